"""A small network trained by Lightning's Trainer on random tokens. `--told FILE`: train without the callback, then with
it, and write the losses that `training_step` returned and where the weights ended."""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import warnings

import torch

parser = argparse.ArgumentParser()
parser.add_argument("--package", default="lightning.pytorch")
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--told")
given = parser.parse_args()
pl = importlib.import_module(given.package)

from campaign.callbacks import Lightning  # noqa: E402 (after the package, whose Callback it then is)

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
TOKENS = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(1))


class Model(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.net = torch.nn.Sequential(torch.nn.Embedding(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 64))
        self.losses: list[float] = []

    def training_step(self, batch: list[torch.Tensor], number: int) -> torch.Tensor:
        (tokens,) = batch
        loss = torch.nn.functional.cross_entropy(self.net(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), lr=1e-2)


def trained(callback: bool) -> Model:
    """A step is two batches of four sequences."""
    model = Model()
    trainer = pl.Trainer(
        accelerator="cpu",
        max_steps=given.steps,
        max_epochs=-1,
        accumulate_grad_batches=2,
        gradient_clip_val=0.1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[Lightning()] if callback else [],
    )
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(TOKENS), batch_size=4)
    trainer.fit(model, loader)
    return model


def told(callback: bool) -> dict[str, object]:
    model = trained(callback)
    weights = b"".join(value.detach().numpy().tobytes() for value in model.parameters())
    return {"losses": model.losses, "weights": hashlib.sha256(weights).hexdigest()}


def first_gradients() -> dict[str, list[float]]:
    """Those of step 1 in plain torch: the two batches have the same length, so that their mean is the whole's."""
    net = Model().net
    loss = torch.nn.functional.cross_entropy(net(TOKENS[:, :-1]).flatten(0, 1), TOKENS[:, 1:].flatten())
    loss.backward()
    torch.nn.utils.clip_grad_norm_(net.parameters(), 0.1)
    return {f"net.{name}": value.grad.flatten().tolist() for name, value in net.named_parameters()}


if given.told:
    with open(given.told, "w") as file:
        json.dump({"without": told(False), "with": told(True), "gradients": first_gradients()}, file)
else:
    trained(True)
