"""CPU time of a quantised verifier for 20 passages, and of other ways to run the same weights.

    OMP_NUM_THREADS=1 python benchmarks/verifier_speed.py --data DATA [--set nq_open]

All score the same questions in turn on one core, each over 20 passages of every length in the set. Prints medians
relative to sentence-transformers' `CrossEncoder.predict` with fp32 weights in torch, and the mean over questions of
Kendall's tau between the two orders of the passages. `unsigned` converts the 8-bit weights, as happens on processors
whose sums of signed ones overflow; `unfused` switches ONNX Runtime's fusions at loading off; `openvino` runs the fp32
weights in OpenVINO, if that is installed.
"""

import argparse
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import onnxruntime
from scipy.stats import kendalltau

from meve.components._onnx_session import open_session
from meve.components._text_splitter import TextSplitter, read_window
from meve.components.verifiers import export_onnx
from meve.components.verifiers._onnx_runtime import OnnxRuntime
from meve.components.verifiers._shipped import VERIFIER_FOLDER
from meve.components.verifiers.cross_encoder import CrossEncoderVerifier
from meve.evaluation._set_runner import sample_questions
from meve.evaluation.datasets import read_set
from meve.evaluation.experiments._experiment import SEED
from meve.training.onnx_dequantize import dequantize_onnx

PASSAGES = 20
Pairs = Sequence[tuple[str, str]]
Way = Callable[[Pairs], Sequence[float]]


def main() -> None:
    """Time all ways in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder of evaluation sets")
    parser.add_argument("--verifier", type=Path, default=VERIFIER_FOLDER, help="another than the one that ships")
    parser.add_argument("--set", default="nq_open")
    parser.add_argument("--questions", type=int, default=30)
    given = parser.parse_args()
    dataset = read_set(given.set, given.data)
    texts = sorted((p.content for p in dataset.passages), key=len)
    questions = [q.text for q in sample_questions(dataset.questions, given.questions + 1, SEED)]
    random = np.random.default_rng(SEED)
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    taus: defaultdict[str, list[float]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        ways = load_ways(given.verifier, Path(folder))
        for n, question in enumerate(questions):
            places = (np.arange(PASSAGES) + random.random(PASSAGES)) * len(texts) / PASSAGES  # one of each twentieth
            pairs = [(question, texts[int(place)]) for place in random.permutation(places)]
            scores = {}
            for name, score in ways.items():
                start = time.process_time()
                scores[name] = score(pairs)
                if n:  # the first warms all up
                    seconds[name].append(time.process_time() - start)
            for name in ways if n else ():
                taus[name].append(kendalltau(scores[name], scores["torch"]).statistic)
    whole = statistics.median(seconds["torch"])
    for name, values in seconds.items():
        median = statistics.median(values)
        print(f"{given.set}, {name}: {1000 * median:.0f} ms, {median / whole:.3f}; tau {np.mean(taus[name]):.3f}")


def load_ways(verifier: Path, folder: Path) -> Mapping[str, Way]:
    """Return the ways to score pairs, by name; `folder` takes the weights in fp32."""
    import torch
    from sentence_transformers import CrossEncoder

    export_onnx(dequantize_onnx(verifier, folder), folder)
    small, whole = verifier / "onnx" / "model.onnx", folder / "onnx" / "model.onnx"
    unsigned, unfused = onnxruntime.SessionOptions(), onnxruntime.SessionOptions()
    unsigned.add_session_config_entry("session.x64quantprecision", "1")
    unfused.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    ways = {
        "graph": run_graph(verifier, open_session(small)),
        "unsigned": run_graph(verifier, load_session(small, unsigned)),
        "unfused": run_graph(verifier, load_session(small, unfused)),
        "fp32 graph": run_graph(verifier, open_session(whole)),
        "torch": CrossEncoder(str(folder), device="cpu").predict,
        "torch, bfloat16": CrossEncoder(str(folder), device="cpu", model_kwargs={"dtype": torch.bfloat16}).predict,
    }
    if find_spec("openvino"):
        ways["openvino"] = run_graph(verifier, OpenVino(whole))
    return ways


def load_session(graph: Path, options: onnxruntime.SessionOptions) -> onnxruntime.InferenceSession:
    """Return a session on one core."""
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])


def run_graph(verifier: Path, session: Any) -> Way:
    """Return a function to score the pairs of one question, read one by one."""
    runtime = OnnxRuntime(
        session,
        splitter=TextSplitter.from_folder(verifier),
        window=read_window(verifier),
        name="verifier",
    )
    model = CrossEncoderVerifier(runtime, name="verifier", batch_size=1, cache_size=0)
    return lambda pairs: model.raw_scores(pairs[0][0], [passage for _, passage in pairs]).tolist()


class OpenVino:
    """A graph compiled by OpenVINO for one core, called as a session of ONNX Runtime is."""

    def __init__(self, graph: Path) -> None:
        import openvino  # type: ignore[import-not-found] # not a dependency

        self._model = openvino.Core().compile_model(graph, "CPU", {"INFERENCE_NUM_THREADS": 1})
        self.get_inputs = lambda: [Name(each.any_name) for each in self._model.inputs]
        self.get_outputs = lambda: [Name(each.any_name) for each in self._model.outputs]

    def run(self, _: None, arrays: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """Return the outputs."""
        return list(self._model(arrays).to_tuple())


class Name(NamedTuple):
    """An input or output."""

    name: str


if __name__ == "__main__":
    main()
