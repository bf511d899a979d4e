"""Makes a cross-encoder of labelled pairs, and goes on where it was interrupted. Runs on a CPU, faster on a GPU.

The loop, its checkpoints and its optimiser are those of transformers' `Trainer`.
"""

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from logging import ERROR
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from meve.components._model_errors import map_load_errors
from meve.errors import ConfigurationError, ModelError, TrainingError, wrap_errors, missing_extra
from meve.training._batch_order import in_order
from meve.types import LabelledPair

if TYPE_CHECKING:
    import torch

ON_CPU = 8
"""Pairs that go through the model together on a CPU; a step has all of its batch."""
CHECKPOINTS, SETTINGS = "checkpoints", "training.json"

_DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "hidden_dropout", "attention_dropout",
    "embedding_dropout", "mlp_dropout", "seq_classif_dropout", "dropout",
)  # fmt: skip
"""What models call it in their configuration."""

Progress = Callable[[int, int], None]
"""Called with how many steps are done, and how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How to learn."""

    epochs: int = 2
    """Passes over the pairs."""
    batch_size: int = 32
    """Pairs learned from at once."""
    learning_rate: float = 5e-5
    """The highest; it rises over `warmup` and falls to zero, both in a straight line."""
    warmup: float = 0.06
    """The share of all steps, in [0, 1)."""
    weight_decay: float = 0.01
    max_length: int = 256
    """Tokens of a pair that are read; of a longer one, the end of its longer text is left out."""
    dropout: float | None = None
    """The share of values that are left out at random while learning, in [0, 1); None for the model's own."""
    save_every: int = 100
    """Steps between two checkpoints: what an interruption costs at most."""
    seed: int = 42

    def __post_init__(self) -> None:
        whole = {"epochs": 1, "batch_size": 1, "max_length": 16, "save_every": 1, "seed": 0}
        for name, least in whole.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigurationError(f"{name} is {value!r}: give a whole number of at least {least}")
        if not 0 < self.learning_rate < 1:
            raise ConfigurationError(f"learning_rate is {self.learning_rate!r}: give a number between 0 and 1")
        if not 0 <= self.warmup < 1 or not 0 <= self.weight_decay < 1:
            raise ConfigurationError(f"warmup {self.warmup!r}, weight_decay {self.weight_decay!r}: both lie in [0, 1)")
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigurationError(f"dropout is {self.dropout!r}: give a number in [0, 1), or None")


def fine_tune(
    base: str | Path,
    pairs: Sequence[LabelledPair],
    to: Path,
    config: TrainingConfig | None = None,
    progress: Progress | None = None,
) -> Path:
    """Train a model with one label, by cross-entropy, to tell pairs that are relevant from those that aren't.

    Args:
        base: the folder or hub name of a model to begin with: an encoder, or a cross-encoder.
        pairs: what to learn from.
        to: the folder to write to. If it holds an interrupted training of the same pairs and settings, that goes on.
        config: how; by default `TrainingConfig()`.
        progress: told after each step.

    Returns:
        `to`, with model and tokenizer, to be loaded as any cross-encoder.

    Raises:
        MissingExtraError: torch, transformers or accelerate isn't installed.
        ModelError: no model of that name in reach, or one that can't be trained.
        TrainingError: no pairs, pairs of one label only, or a folder with another training.
    """
    config = config or TrainingConfig()
    if len({pair.relevant for pair in pairs}) < 2:
        raise TrainingError(f"{len(pairs)} pairs of one label or none teach nothing: give relevant ones and others")
    try:
        import torch
        from transformers import PrinterCallback, Trainer, set_seed

        import_module("accelerate")  # which Trainer needs
    except ImportError as cause:
        raise missing_extra(str(cause.name), "train", "training a verifier") from cause
    _claim(to, base, pairs, config)
    set_seed(config.seed)  # a new head begins at random
    with map_load_errors(str(base), "give the folder of an encoder, such as the bundled all-MiniLM-L6-v2"):
        model, tokenizer = _loaded(str(base), config.dropout)
    lengths = [len(pair.query) + len(pair.passage) for pair in pairs]
    order = in_order(lengths, batch_size=config.batch_size, epochs=config.epochs, seed=config.seed)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    trainer: Any = Trainer(
        model=model,
        args=_arguments(to / CHECKPOINTS, config),
        train_dataset=_Ordered(pairs, order),
        data_collator=lambda rows: _collated(rows, tokenizer, config.max_length),
        compute_loss_func=lambda outputs, labels, num_items_in_batch=None: (
            loss(outputs.logits.reshape(-1), labels) / (num_items_in_batch or len(labels))
        ),
        callbacks=_callbacks(progress),
    )
    trainer.remove_callback(PrinterCallback)
    with wrap_errors(ModelError, f"training {base}"):
        trainer.train(resume_from_checkpoint=_latest(to / CHECKPOINTS))
        model.save_pretrained(to)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(to)
    return to


class _Ordered:
    """The pairs of all passes, one after the other."""

    def __init__(self, pairs: Sequence[LabelledPair], order: Sequence[int]) -> None:
        self._pairs = pairs
        self._order = order

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, n: int) -> LabelledPair:
        return self._pairs[self._order[n]]


def _collated(rows: Sequence[LabelledPair], tokenizer: Any, max_length: int) -> dict[str, "torch.Tensor"]:  # noqa: ANN401
    import torch

    made = tokenizer(
        [row.query for row in rows],
        [row.passage for row in rows],
        padding=True,
        truncation="longest_first",
        max_length=max_length,
        return_tensors="pt",
    )
    return {**made, "labels": torch.tensor([float(row.relevant) for row in rows])}


def _loaded(base: str, dropout: float | None) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    made = AutoConfig.from_pretrained(base, num_labels=1)
    for name in _DROPOUTS if dropout is not None else ():
        if isinstance(getattr(made, name, None), float):
            setattr(made, name, dropout)
    level = logging.get_verbosity()
    logging.set_verbosity(ERROR)  # that the head is new is no news here
    try:
        model = AutoModelForSequenceClassification.from_pretrained(base, config=made)
    finally:
        logging.set_verbosity(level)
    return model, AutoTokenizer.from_pretrained(base)


def _arguments(folder: Path, config: TrainingConfig) -> Any:  # noqa: ANN401
    import torch
    from transformers import TrainingArguments

    at_once = config.batch_size if torch.cuda.is_available() else gcd(config.batch_size, ON_CPU)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,  # the order holds all passes
        per_device_train_batch_size=at_once,
        gradient_accumulation_steps=config.batch_size // at_once,
        learning_rate=config.learning_rate,
        lr_scheduler_type="linear",
        warmup_steps=config.warmup,
        weight_decay=config.weight_decay,
        train_sampling_strategy="sequential",
        save_steps=config.save_every,
        save_total_limit=2,
        logging_steps=config.save_every,
        seed=config.seed,
        data_seed=config.seed,
        remove_unused_columns=False,
        dataloader_num_workers=0,
        dataloader_pin_memory=False,
        disable_tqdm=True,
        report_to=[],
    )


def _callbacks(progress: Progress | None) -> list[Any]:
    from transformers import TrainerCallback

    class Told(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
            if progress:
                progress(state.global_step, state.max_steps)

    return [Told()]


def _claim(to: Path, base: str | Path, pairs: Sequence[LabelledPair], config: TrainingConfig) -> None:
    """Make the folder this training's own.

    Raises:
        TrainingError: another training has begun there.
    """
    digest = hashlib.sha256()
    for pair in pairs:
        digest.update(json.dumps([pair.query, pair.passage, pair.relevant]).encode())
    mine = {"base": str(base), "pairs": len(pairs), "data": digest.hexdigest(), **asdict(config)}
    file = to / SETTINGS
    if file.is_file():
        there = json.loads(file.read_text("utf-8"))
        other = sorted(key for key in mine.keys() | there.keys() if mine.get(key) != there.get(key))
        other = [key for key in other if key != "save_every"]
        if other:
            raise TrainingError(
                f"{to} holds a training with another {', '.join(other)}: give the same again to go on with it, or "
                "another folder"
            )
        return
    to.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(mine, indent=1) + "\n", "utf-8")


def _latest(folder: Path) -> str | None:
    """The newest checkpoint that is whole."""
    found = sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2]))
    whole = [p for p in found if (p / "trainer_state.json").is_file()]
    return str(whole[-1]) if whole else None
