"""Governed memory for agents: stores records by policy, recalls them by relevance, and logs every access and change."""

from meve.conversation import Turn
from meve.memory._audit.audit_log import AuditLog
from meve.memory._audit.certificate import CertificateCheck, ErasureCertificate, ErasureEntry
from meve.memory._audit.chain import Action, AuditEvent, AuditHead, AuditVerification, RecordDifference
from meve.memory._audit.checkpoints import Checkpoints
from meve.memory._audit.subject_access import Explanation
from meve.memory._classify.tags import PolicyTagger, Tagger
from meve.memory._contradiction.llm import LlmUpdateJudge
from meve.memory._contradiction.nli import NliContradiction
from meve.memory._contradiction.rules import Contradiction, RuleContradiction
from meve.memory._contradiction.trained import TrainedUpdateJudge
from meve.memory._contradiction.updates import RuleUpdateJudge, UpdateJudge, UpdateVerdict
from meve.memory._feedback.reflector import ReflectionResult
from meve.memory._feedback.usage_judge import RuleUsageJudge, UsageJudge, UsageVerdict
from meve.memory._import.importer import ImportReport
from meve.memory._import.rows import ImportFormat
from meve.memory._maintenance.maintenance import Background
from meve.memory._maintenance.plan import MaintenanceReport
from meve.memory._maintenance.summaries import ExtractiveSummariser, Summariser
from meve.memory._recall.formatting import format_recall
from meve.memory._recall.prompt import Prompt, PromptBudget
from meve.memory._recall.query import SearchOptions
from meve.memory._recall.searcher import Recall
from meve.memory._runtime import MemoryOptions
from meve.memory._write.eraser import ErasureReport
from meve.memory._write.extraction import FactDecision, FactExtractor, RuleExtractor, TurnContext
from meve.memory._write.llm_extraction import LlmExtractor
from meve.memory._write.record_factory import Classifier, RecordOptions, SourceClassifier
from meve.memory._write.reembedding import ReembedReport
from meve.memory._write.secrets import PatternSecretDetector, SecretDetector
from meve.memory._write.writer import UpdateOptions
from meve.memory.copying import CopyReport, MemoryPlace, copy_memory
from meve.memory.memory import GovernedMemory
from meve.memory.policy import ClassRule, Policy
from meve.memory.records import MemoryRecord, MemoryStats
from meve.memory.turns import RecordedTurns, TurnRules, record_turns

__all__ = [
    "Action", "AuditEvent", "AuditHead", "AuditLog", "AuditVerification", "Background", "CertificateCheck",
    "Checkpoints", "ClassRule", "Classifier", "Contradiction", "CopyReport", "ErasureCertificate", "ErasureEntry",
    "ErasureReport", "Explanation", "ExtractiveSummariser", "FactDecision", "FactExtractor", "GovernedMemory",
    "ImportFormat", "ImportReport", "LlmExtractor", "LlmUpdateJudge", "MaintenanceReport", "MemoryOptions",
    "MemoryPlace", "MemoryRecord", "MemoryStats", "NliContradiction", "PatternSecretDetector", "Policy",
    "PolicyTagger", "Prompt", "PromptBudget", "Recall", "RecordDifference", "RecordOptions", "RecordedTurns",
    "ReembedReport", "ReflectionResult", "RuleContradiction", "RuleExtractor", "RuleUpdateJudge", "RuleUsageJudge",
    "SearchOptions", "SecretDetector", "SourceClassifier", "Summariser", "Tagger", "TrainedUpdateJudge", "Turn",
    "TurnContext", "TurnRules", "UpdateJudge", "UpdateOptions", "UpdateVerdict", "UsageJudge", "UsageVerdict",
    "copy_memory", "format_recall", "record_turns",
]  # fmt: skip
