"""A memory that plans: routes each question to the part of a user's memory that it needs, and checks the answer."""

from meve.routing._answering import RoutedAnswer, Step
from meve.routing._evidence import RoutedRecall
from meve.routing._plan import Intent, RoutePlan, Tier
from meve.routing._validator import Verdict
from meve.routing.config import RouterConfig
from meve.routing.memory_router import MemoryRouter

__all__ = [
    "Intent", "MemoryRouter", "RoutePlan", "RoutedAnswer", "RoutedRecall", "RouterConfig", "Step", "Tier", "Verdict",
]  # fmt: skip
