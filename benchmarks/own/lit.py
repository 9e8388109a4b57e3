"""Lightning's Trainer with the callback: way 3."""

from __future__ import annotations

import lightning.pytorch as pl
import torch
from model import CLIP, flags, loader, model, optimizer

from campaign.callbacks import Lightning


class Module(pl.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = model(given)
        self.forward_of = torch.compile(self.net) if given.compile else self.net

    def training_step(self, batch: dict[str, torch.Tensor], number: int) -> torch.Tensor:
        return self.forward_of(**batch).loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return optimizer(given, self.net)


given = flags().parse_args()
pl.Trainer(
    accelerator="cpu",
    max_steps=given.steps,
    max_epochs=-1,
    precision="bf16-mixed" if given.bf16 else "32-true",
    gradient_clip_val=CLIP,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
    callbacks=[Lightning()],
).fit(Module(), loader(given))
