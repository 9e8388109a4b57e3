"""A small training run to start from: a deep, narrow network learns to tell the sign of a product.

    python train_example.py --steps 500

It trains as any script does. The two lines that a campaign needs are marked; outside a campaign they do nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import torch

import campaign

WIDTH, BATCH = 64, 256


def batches(steps: int) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Points of a cube and whether the product of their first three coordinates is positive, the same in every run. A
    quarter of the answers are wrong, so that the loss stays near 0.56 and never becomes mere rounding."""
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        points = torch.rand(BATCH, 8, generator=generator) * 2 - 1
        wrong = torch.rand(BATCH, generator=generator) < 0.25
        yield points, ((points[:, :3].prod(dim=1) > 0) ^ wrong).float()


def network(layers: int) -> torch.nn.Module:
    """`layers` hidden layers of WIDTH units."""
    hidden = [torch.nn.Linear(8, WIDTH), torch.nn.GELU()]
    for _ in range(layers - 1):
        hidden += [torch.nn.Linear(WIDTH, WIDTH), torch.nn.LayerNorm(WIDTH), torch.nn.GELU()]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(WIDTH, 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--lr", type=float, default=3e-4)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--fused", action="store_true", help="AdamW in one call for all parameters")
    given = parser.parse_args()

    torch.manual_seed(0)
    model = network(given.layers).to(given.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=given.lr, fused=given.fused)

    for step, (points, signs) in enumerate(campaign.steps(batches(given.steps), tokens=BATCH)):  # 1: a step begins here
        optimizer.zero_grad()
        outputs = model(points.to(given.device)).squeeze(1)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(outputs, signs.to(given.device))
        loss.backward()
        optimizer.step()
        campaign.record(loss=loss, model=model)  # 2: what it computed
        if step % 100 == 0:
            print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
