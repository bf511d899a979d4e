"""Compute similarities, BM25 weights and calibration errors; each formula names its source."""

import numpy as np
import numpy.typing as npt

from meve.types import FloatArray


def sigmoid(x: npt.NDArray[np.floating]) -> FloatArray:
    """Return 1 / (1 + e^-x), without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    half = np.tanh(0.5 * np.asarray(x, dtype=np.float64))
    return np.asarray(0.5 * (1.0 + half), dtype=np.float32)


def log_odds(probabilities: npt.NDArray[np.floating] | float) -> FloatArray:
    """Return ln(p / (1 - p)), the inverse of `sigmoid`; 0 and 1 count as 1e-9 and 1 - 1e-9.

    >>> log_odds(np.array([0.0, 0.5, 0.88])).round(2).tolist()
    [-20.72, 0.0, 1.99]
    """
    p = np.clip(np.asarray(probabilities, dtype=np.float64), 1e-9, 1 - 1e-9)
    return np.log(p / (1 - p))


def normalize(vectors: npt.NDArray[np.floating]) -> FloatArray:
    """Scale vectors of shape (n, d) or (d,) to length 1; a zero vector stays zero."""
    array = np.asarray(vectors, dtype=np.float32)
    norms = np.sqrt(np.add.reduce(array * array, axis=-1, keepdims=True))
    if (norms > 0).all():
        return np.asarray(array / norms)
    scaled: FloatArray = np.divide(array, norms, out=np.zeros_like(array), where=norms > 0)
    return scaled


def cosines(query: npt.NDArray[np.floating], passages: npt.NDArray[np.floating]) -> FloatArray:
    """Return the cosine of a query (d,) with each of n passages (n, d), in [-1, 1], shape (n,)."""
    # row by row and not by BLAS, whose blocks round equal rows differently: equal passages must tie
    p, q = np.asarray(passages, dtype=np.float32), np.asarray(query, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", p, p)) * np.sqrt(np.einsum("j,j", q, q))
    similarities = np.divide(np.einsum("ij,j->i", p, q), lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return np.asarray(np.clip(similarities, -1.0, 1.0))


_multiply = getattr(np, "vecdot", None)
"""Takes half the time of `einsum`; NumPy has it from version 2 on."""


def multiply_rows(rows: FloatArray, vector: FloatArray) -> FloatArray:
    """Return the inner products of n rows (n, d) with a vector (d,), shape (n,); equal rows have equal ones.

    BLAS's product of a matrix rounds equal rows differently, and its threads wait for each other.
    """
    return np.asarray(np.einsum("ij,j->i", rows, vector) if _multiply is None else _multiply(rows, vector))


_SINGLE_THREADED = 1 << 22
"""Number of multiplications up to which starting BLAS's threads costs more than it saves."""


def inner_products(vectors: FloatArray) -> FloatArray:
    """Return the inner products of n vectors (n, d) with each other, shape (n, n)."""
    if vectors.size * len(vectors) > _SINGLE_THREADED:
        return np.asarray(vectors @ vectors.T)
    if _multiply is None:
        return np.asarray(np.einsum("id,jd->ij", vectors, vectors))
    return np.asarray(_multiply(vectors[:, None], vectors))


def bm25_idf(containing: npt.NDArray[np.number], total: int) -> npt.NDArray[np.float64]:
    """Return the inverse document frequency ln(1 + (N - n + 0.5) / (n + 0.5)), which is never negative.

    Args:
        containing: n, the number of texts that contain each term, shape (terms,).
        total: N, the number of texts.

    Source: Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), eq. 3.3, with Lucene's 1 inside the
    logarithm.
    """
    n = np.asarray(containing, dtype=np.float64)
    return np.log1p((total - n + 0.5) / (n + 0.5))


def bm25_norm(length: npt.NDArray[np.number], mean_length: float, k1: float, b: float) -> npt.NDArray[np.float64]:
    """Return the BM25 length norm k1 (1 - b + b · length / mean length).

    A term with the count tf adds idf · tf (k1 + 1) / (tf + norm) to a text's score.

    Args:
        length: the word count of each text, shape (n,).
        mean_length: the mean word count of all texts.
        k1: how fast repetitions saturate, at least 0.
        b: how much the length matters, in [0, 1].

    Source: Robertson and Zaragoza (2009), eq. 3.15, with the (k1 + 1) of Okapi BM25.
    """
    return k1 * (1.0 - b + b * np.asarray(length, dtype=np.float64) / mean_length)


def expected_calibration_error(
    probabilities: npt.NDArray[np.floating], relevant: npt.NDArray[np.bool_], bins: int = 15
) -> float:
    """Return the mean gap between predicted and observed frequency over equally wide bins, weighted by size.

    Args:
        probabilities: predictions in [0, 1], shape (n,).
        relevant: the true labels, shape (n,).
        bins: the number of bins.

    Source: Guo et al., On Calibration of Modern Neural Networks (2017), eq. 3.

    >>> expected_calibration_error(np.array([0.8, 0.8, 0.8, 0.8]), np.array([True, True, True, False]))
    0.05
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.size == 0:
        return 0.0
    y = np.asarray(relevant, dtype=np.float64)
    which = np.minimum((p * bins).astype(np.int64), bins - 1)
    counts = np.bincount(which, minlength=bins)
    gaps = np.abs(np.bincount(which, weights=p, minlength=bins) - np.bincount(which, weights=y, minlength=bins))
    return float(round(gaps[counts > 0].sum() / p.size, 12))
