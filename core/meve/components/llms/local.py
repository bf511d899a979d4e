"""A language model on this machine, through transformers."""

from importlib import import_module
from typing import Any, Self

from meve._extras import require_imports
from meve._fork_safety import ForkSafeLock
from meve.components._model_errors import map_load_errors
from meve.errors import ModelError, QueryError, wrap_errors


class TransformersLanguageModel:
    """Completes prompts by a causal language model, always with the likeliest token. Threads take turns.

    Args:
        model: a loaded causal model of transformers.
        tokenizer: its tokenizer; a prompt becomes a message of the user if it has a chat template.
        max_tokens: the most tokens of an answer, at least 1.
    """

    def __init__(self, model: Any, tokenizer: Any, *, max_tokens: int = 256) -> None:  # noqa: ANN401 - heavy types
        self._model, self._tokenizer, self._max_tokens = model, tokenizer, max_tokens
        self._lock = ForkSafeLock()

    @classmethod
    def from_name(cls, name: str, *, max_tokens: int = 256, local_files_only: bool = False) -> Self:
        """Load a model by its name or folder.

        Raises:
            MissingExtraError: transformers or torch isn't installed.
            ModelNotFoundError: no such model on this machine or on the hub.
            ModelError: it can't be loaded.
        """
        with require_imports(f"the language model {name!r}", {"transformers": "models", "torch": "models"}):
            transformers: Any = import_module("transformers")
            import_module("torch")
        with map_load_errors(name, "give a model of this machine, a server's address or a function"):
            tokenizer = transformers.AutoTokenizer.from_pretrained(name, local_files_only=local_files_only)
            model = transformers.AutoModelForCausalLM.from_pretrained(name, local_files_only=local_files_only)
        return cls(model.eval(), tokenizer, max_tokens=max_tokens)

    def __call__(self, prompt: str, /) -> str:
        """Return the model's answer.

        Raises:
            QueryError: prompt and answer exceed the model's window.
            ModelError: the model failed.
        """
        with self._lock, wrap_errors(ModelError, "completing a prompt"):
            inputs = self._encode(prompt)
            length = inputs["input_ids"].shape[1]
            window = getattr(self._model.config, "max_position_embeddings", None)
            if window is not None and length + self._max_tokens > window:
                raise QueryError(
                    f"prompt must leave {self._max_tokens} of the model's {window} tokens for the answer, got {length} "
                    "tokens: shorten it"
                )
            output = self._model.generate(
                **inputs.to(self._model.device), max_new_tokens=self._max_tokens, do_sample=False,
                pad_token_id=self._tokenizer.pad_token_id or self._tokenizer.eos_token_id,
            )  # fmt: skip
            return str(self._tokenizer.decode(output[0][length:], skip_special_tokens=True)).strip()

    def _encode(self, prompt: str) -> Any:  # noqa: ANN401 - heavy types
        if getattr(self._tokenizer, "chat_template", None):
            return self._tokenizer.apply_chat_template(
                [{"role": "user", "content": prompt}], add_generation_prompt=True, return_tensors="pt",
                return_dict=True,
            )  # fmt: skip
        return self._tokenizer(prompt, return_tensors="pt")
