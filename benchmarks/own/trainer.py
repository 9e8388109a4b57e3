"""transformers' Trainer with the callback: way 3."""

from __future__ import annotations

import tempfile

from model import CLIP, RATE, SEQUENCES, Pages, collate, flags, model, optimizer
from transformers import Trainer, TrainingArguments

from campaign.callbacks import HuggingFace

given = flags().parse_args()
net = model(given)
arguments = TrainingArguments(
    tempfile.mkdtemp(prefix="trainer-"),
    max_steps=given.steps,
    per_device_train_batch_size=SEQUENCES,
    learning_rate=RATE,
    lr_scheduler_type="constant",
    max_grad_norm=CLIP,
    bf16=given.bf16,
    torch_compile=given.compile,
    gradient_checkpointing=given.checkpointing,
    gradient_checkpointing_kwargs={"use_reentrant": False},
    dataloader_num_workers=given.workers,
    dataloader_persistent_workers=given.workers > 0,
    logging_steps=100,
    save_strategy="no",
    report_to=[],
    disable_tqdm=True,
    use_cpu=True,
)
Trainer(
    net,
    arguments,
    data_collator=collate,
    train_dataset=Pages(),
    optimizers=(optimizer(given, net), None),
    callbacks=[HuggingFace()],
).train()
