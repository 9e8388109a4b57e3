"""A two-layer GPT-2 trained by transformers' Trainer on random tokens. `--told FILE`: train without the callback, then
with it, and write what transformers itself logged and where the weights ended."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments, set_seed

from campaign.callbacks import HuggingFace


def data() -> list[dict[str, torch.Tensor]]:
    tokens = torch.randint(0, 64, (8, 16), generator=torch.Generator().manual_seed(1))
    # The first token has nothing before it to be predicted from: Trainer divides by the labels that are not -100.
    labels = tokens.clone()
    labels[:, 0] = -100
    return [{"input_ids": row, "labels": label} for row, label in zip(tokens, labels, strict=True)]


def model() -> GPT2LMHeadModel:
    set_seed(0)
    size = {"n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": 16, "vocab_size": 64}
    dropout = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    return GPT2LMHeadModel(GPT2Config(**size, **dropout, bos_token_id=0, eos_token_id=0))


def trained(callback: bool, steps: int, logging: int) -> tuple[Trainer, GPT2LMHeadModel]:
    """A step is two batches of four sequences, which are all that there are."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = TrainingArguments(
            folder,
            max_steps=steps,
            per_device_train_batch_size=4,
            gradient_accumulation_steps=2,
            learning_rate=1e-2,
            max_grad_norm=0.1,
            logging_steps=logging,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            use_cpu=True,
        )
        built = model()
        trainer = Trainer(built, arguments, train_dataset=data(), callbacks=[HuggingFace()] if callback else [])
        trainer.train()
    return trainer, built


def told(callback: bool, steps: int) -> dict[str, object]:
    trainer, built = trained(callback, steps, logging=1)
    losses = [row["loss"] for row in trainer.state.log_history if "loss" in row]
    weights = b"".join(value.detach().numpy().tobytes() for value in built.parameters())
    return {"losses": losses, "weights": hashlib.sha256(weights).hexdigest()}


def first_gradients() -> dict[str, list[float]]:
    """Those of step 1 in plain torch."""
    built = model()
    tokens = torch.stack([row["input_ids"] for row in data()])
    built(input_ids=tokens, labels=tokens).loss.backward()
    torch.nn.utils.clip_grad_norm_(built.parameters(), 0.1)
    return {name: value.grad.flatten().tolist() for name, value in built.named_parameters()}


parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=6)
parser.add_argument("--logging", type=int, default=4)
parser.add_argument("--told")
given = parser.parse_args()
torch.set_num_threads(1)
if given.told:
    with open(given.told, "w") as file:
        runs = {"without": told(False, given.steps), "with": told(True, given.steps)}
        json.dump({**runs, "gradients": first_gradients()}, file)
else:
    trained(True, given.steps, given.logging)
