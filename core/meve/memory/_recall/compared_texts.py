"""What searches found when they compared the texts of a user's records, for later searches."""

from meve.memory._contradiction.outline import read_outline
from meve.memory._contradiction.statements import Statement, parse_statement
from meve.memory._contradiction.updates import UpdateRelation

_MAX_STATEMENTS = 2_048
"""The number of parsed statements that are kept, and of older ones besides."""
_MAX_RELATIONS = 16_384
"""The number of pairs of records whose relation is kept."""
Pair = tuple[int, int, int, int]
"""Row and version of an older record, then of a newer one."""


class ComparedTexts:
    """Parsed statements, and relations of pairs of active records."""

    def __init__(self) -> None:
        self._statements: dict[str, Statement] = {}
        self._older_statements: dict[str, Statement] = {}
        """Those that were parsed or used before there were too many."""
        self._relations: dict[Pair, UpdateRelation] = {}

    def statement(self, text: str, outline: str = "") -> Statement:
        """Return the statement of a record's text and stored outline, kept until `drop`."""
        found = self._statements.get(text)
        if found is None:
            if len(self._statements) >= _MAX_STATEMENTS:
                self._older_statements, self._statements = self._statements, {}
            found = self._older_statements.get(text) or parse_statement(text, read_outline(outline, text))
            self._statements[text] = found
        return found

    def drop(self, text: str) -> None:
        """Drop the statement of a record that is removed or changed."""
        self._statements.pop(text, None)
        self._older_statements.pop(text, None)

    def relation(self, pair: Pair) -> UpdateRelation | None:
        """Return what `keep_relation` kept."""
        return self._relations.get(pair)

    def keep_relation(self, pair: Pair, relation: UpdateRelation) -> None:
        """Keep the relation of the newer of two records to the older one; another version of a record is another."""
        if len(self._relations) >= _MAX_RELATIONS:
            self._relations = {}
        self._relations[pair] = relation
