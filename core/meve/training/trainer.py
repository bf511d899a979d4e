"""Fine-tunes a cross-encoder on labelled pairs, resumable, on a CPU or a GPU.

The loop, its checkpoints and its optimiser are those of transformers' `Trainer`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from logging import ERROR
from math import gcd
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from meve.components._model_errors import map_load_errors
from meve.components.verifiers import SHIPPED_VERIFIER
from meve.errors import ConfigurationError, ModelError, TrainingError, missing_extra, wrap_errors
from meve.training._batch_order import order_batches
from meve.types import LabelledPair, Progress

if TYPE_CHECKING:
    import torch

ON_CPU = 8
"""Pairs per forward pass on a CPU; gradients accumulate over the batch."""
CHECKPOINTS, SETTINGS = "checkpoints", "training.json"

_DROPOUTS = (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "hidden_dropout", "attention_dropout",
    "embedding_dropout", "mlp_dropout", "seq_classif_dropout", "dropout",
)  # fmt: skip
"""Names of dropout settings in models' configurations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """The training settings."""

    epochs: int = 2
    """The number of passes over the pairs."""
    batch_size: int = 32
    """Pairs per optimiser step."""
    learning_rate: float = 5e-5
    """The highest learning rate; it rises linearly over `warmup` and then falls linearly to zero."""
    warmup: float = 0.06
    """The share of all steps used for warm-up, in [0, 1)."""
    weight_decay: float = 0.01
    max_length: int = 256
    """The maximum number of tokens of a pair; the longer text of a longer pair is truncated."""
    dropout: float | None = None
    """The dropout rate in [0, 1); None for the model's own."""
    bf16: bool = False
    """Whether matrix products are computed in bfloat16: faster where the processor supports it."""
    frozen_layers: int = 0
    """The number of lowest layers, the embeddings with them, that keep their weights: each saves time. 0 trains all."""
    save_every: int = 100
    """Steps between two checkpoints."""
    seed: int = 42

    def __post_init__(self) -> None:
        minimums = {"epochs": 1, "batch_size": 1, "max_length": 16, "save_every": 1, "seed": 0, "frozen_layers": 0}
        for name, least in minimums.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < least:
                raise ConfigurationError(f"{name} must be a whole number of at least {least}, got {value!r}")
        if not 0 < self.learning_rate < 1:
            raise ConfigurationError(f"learning_rate must be between 0 and 1, got {self.learning_rate!r}")
        if not 0 <= self.warmup < 1 or not 0 <= self.weight_decay < 1:
            raise ConfigurationError(
                f"warmup and weight_decay must be in [0, 1), got {self.warmup!r} and {self.weight_decay!r}"
            )
        if self.dropout is not None and not 0 <= self.dropout < 1:
            raise ConfigurationError(f"dropout must be in [0, 1) or None, got {self.dropout!r}")


def fine_tune(
    base: str | Path,
    pairs: Sequence[LabelledPair],
    to: Path,
    config: TrainingConfig | None = None,
    progress: Progress | None = None,
    *,
    targets: Sequence[float] | None = None,
) -> Path:
    """Train a model with one label, by cross-entropy, to separate relevant from irrelevant pairs.

    Args:
        base: the folder or hub name of the model to start from, an encoder or a cross-encoder; `meve-verifier-1` for
            the verifier that ships, which also needs the extra `onnx`.
        pairs: the training pairs.
        to: the output folder. An interrupted training of the same pairs and settings there is resumed.
        config: the settings; by default `TrainingConfig()`.
        progress: called after each step.
        targets: the probability in [0, 1] to be learned for each pair, such as a teacher's; None for 1 where a pair is
            relevant and 0 elsewhere.

    Returns:
        `to`, with model and tokenizer, to be loaded as any cross-encoder.

    Raises:
        MissingExtraError: torch, transformers or accelerate isn't installed.
        ModelError: no such model on this machine or on the hub, or it can't be trained.
        TrainingError: no pairs, pairs of one label only, invalid targets, or the folder holds another training.
        ConfigurationError: the model has no more than `frozen_layers` layers.
    """
    config = config or TrainingConfig()
    goals = _check_targets(pairs, targets)
    if len({pair.relevant for pair in pairs}) < 2:
        raise TrainingError(f"training needs relevant and irrelevant pairs, got {len(pairs)} pairs of one label")
    try:
        import torch
        from transformers import PrinterCallback, Trainer, set_seed

        import_module("accelerate")  # required by Trainer
    except ImportError as cause:
        raise missing_extra(str(cause.name), "train", "training a verifier") from cause
    set_seed(config.seed)  # initialises a new head
    with map_load_errors(str(base), "give the folder of an encoder, such as the bundled all-MiniLM-L6-v2"):
        model, tokenizer = _load_base(str(base), config.dropout)
    _freeze(model, config.frozen_layers)
    _claim_folder(to, base, pairs, goals, config)
    lengths = [len(pair.query) + len(pair.passage) for pair in pairs]
    order = order_batches(lengths, batch_size=config.batch_size, epochs=config.epochs, seed=config.seed)
    loss = torch.nn.BCEWithLogitsLoss(reduction="sum")
    trainer: Any = Trainer(
        model=model,
        args=_arguments(to / CHECKPOINTS, config),
        train_dataset=[(pairs[n], goals[n]) for n in order],
        data_collator=lambda rows: _collate(rows, tokenizer, config.max_length),
        compute_loss_func=lambda outputs, labels, num_items_in_batch=None: (
            loss(outputs.logits.reshape(-1), labels) / (num_items_in_batch or len(labels))
        ),
        callbacks=[_progress_callback(progress)] if progress else [],
    )
    trainer.remove_callback(PrinterCallback)
    with wrap_errors(ModelError, f"training {base}"):
        trainer.train(resume_from_checkpoint=_find_checkpoint(to / CHECKPOINTS))
        model.save_pretrained(to)
    tokenizer.backend_tokenizer.no_truncation()
    tokenizer.backend_tokenizer.no_padding()
    tokenizer.save_pretrained(to)
    return to


def _check_targets(pairs: Sequence[LabelledPair], targets: Sequence[float] | None) -> list[float]:
    if targets is None:
        return [float(pair.relevant) for pair in pairs]
    goals = [float(target) for target in targets]
    wrong = [target for target in goals if not 0 <= target <= 1]
    if len(goals) != len(pairs) or wrong:
        raise TrainingError(
            f"targets must be one number in [0, 1] for each of {len(pairs)} pairs, got {len(goals)}"
            + (f", such as {wrong[0]}" if wrong else "")
        )
    return goals


def _freeze(model: Any, layers: int) -> None:  # noqa: ANN401
    """Exclude the embeddings and the lowest layers from training."""
    from torch.nn import ModuleList

    if not layers:
        return
    stack = next((m for m in model.base_model.modules() if isinstance(m, ModuleList)), ModuleList())
    if len(stack) <= layers:
        raise ConfigurationError(f"frozen_layers must be below the model's {len(stack)} layers, got {layers}")
    for module in (model.base_model.embeddings, *stack[:layers]):
        module.requires_grad_(False)


def _collate(rows: Sequence[tuple[LabelledPair, float]], tokenizer: Any, max_length: int) -> dict[str, "torch.Tensor"]:  # noqa: ANN401
    import torch

    encoding = tokenizer(
        [pair.query for pair, _ in rows],
        [pair.passage for pair, _ in rows],
        padding=True,
        truncation="longest_first",
        max_length=max_length,
        return_tensors="pt",
    )
    return {**encoding, "labels": torch.tensor([goal for _, goal in rows])}


def _load_base(base: str, dropout: float | None) -> tuple[Any, Any]:
    if base != SHIPPED_VERIFIER:
        return _load(base, dropout)
    from meve.components.verifiers._shipped import VERIFIER_FOLDER
    from meve.training.onnx_dequantize import dequantize_onnx

    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        return _load(str(dequantize_onnx(VERIFIER_FOLDER, folder)), dropout)


def _load(base: str, dropout: float | None) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
    from transformers.utils import logging

    config = AutoConfig.from_pretrained(base, num_labels=1)
    for name in _DROPOUTS if dropout is not None else ():
        if isinstance(getattr(config, name, None), float):
            setattr(config, name, dropout)
    level = logging.get_verbosity()
    logging.set_verbosity(ERROR)  # a warning about the new head is expected
    try:
        model = AutoModelForSequenceClassification.from_pretrained(base, config=config)
    finally:
        logging.set_verbosity(level)
    return model, AutoTokenizer.from_pretrained(base)


def _arguments(folder: Path, config: TrainingConfig) -> Any:  # noqa: ANN401
    import torch
    from transformers import TrainingArguments

    at_once = config.batch_size if torch.cuda.is_available() else gcd(config.batch_size, ON_CPU)
    return TrainingArguments(
        output_dir=str(folder),
        num_train_epochs=1,  # the order holds all epochs
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
        bf16=config.bf16,
        use_cpu=config.bf16 and not torch.cuda.is_available(),
        report_to=[],
    )


def _progress_callback(progress: Progress) -> Any:  # noqa: ANN401 - transformers is imported on use
    from transformers import TrainerCallback

    class ProgressCallback(TrainerCallback):  # type: ignore[misc, unused-ignore]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:  # noqa: ANN401, ARG002
            progress(state.global_step, state.max_steps)

    return ProgressCallback()


def _claim_folder(
    to: Path, base: str | Path, pairs: Sequence[LabelledPair], goals: Sequence[float], config: TrainingConfig
) -> None:
    """Record this training's settings in the folder.

    Raises:
        TrainingError: the folder holds another training.
    """
    digest = hashlib.sha256()
    for pair, goal in zip(pairs, goals, strict=True):
        digest.update(json.dumps([pair.query, pair.passage, goal]).encode())
    settings = {"base": str(base), "pairs": len(pairs), "data": digest.hexdigest(), **asdict(config)}
    file = to / SETTINGS
    if file.is_file():
        stored = json.loads(file.read_text("utf-8"))
        other = sorted(key for key in settings.keys() | stored.keys() if settings.get(key) != stored.get(key))
        other = [key for key in other if key != "save_every"]
        if other:
            raise TrainingError(
                f"{to} holds a training with another {', '.join(other)}: use the same to resume it, or another folder"
            )
        return
    to.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(settings, indent=1) + "\n", "utf-8")


def _find_checkpoint(folder: Path) -> str | None:
    checkpoints = sorted(folder.glob("checkpoint-*"), key=lambda p: int(p.name.rpartition("-")[2]))
    complete = [p for p in checkpoints if (p / "trainer_state.json").is_file()]
    return str(complete[-1]) if complete else None
