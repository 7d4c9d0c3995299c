"""Sets of facts such as `inreceptacle(apple, fridge)`, indexed so that a text rule finds its rows
without a scan. Knows no game, no grammar."""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

Row = tuple[str, ...]
Bindings = Mapping[str, str]  # variable -> entity


@dataclass(frozen=True, slots=True)
class Atom:
    """One condition of a query: `predicate(variables)`."""

    predicate: str
    variables: tuple[str, ...]


Query = tuple[Atom, ...]  # a conjunction


class Relation:
    """The rows of one predicate. Buckets of the index are sorted and never mutated in place, so a
    copy is shallow and cheap: a game is reset by copying.

    >>> r = Relation([("apple", "fridge"), ("egg", "fridge")])
    >>> r.add(("cup", "shelf")); r.discard(("egg", "fridge")); r.where(1, "fridge")
    (('apple', 'fridge'),)
    """

    __slots__ = ("_buckets", "rows")

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.rows = set(rows)
        self._buckets: dict[tuple[int, str], tuple[Row, ...]] | None = None  # made when first asked for

    @property
    def buckets(self) -> dict[tuple[int, str], tuple[Row, ...]]:
        """(position, value) to the sorted rows that hold this value there."""
        if self._buckets is None:
            groups: dict[tuple[int, str], list[Row]] = {}
            for row in sorted(self.rows):
                for key in enumerate(row):
                    groups.setdefault(key, []).append(row)
            self._buckets = {key: tuple(group) for key, group in groups.items()}
        return self._buckets

    def copy(self) -> Relation:
        """An independent relation with the same rows."""
        twin = Relation.__new__(Relation)
        twin.rows, twin._buckets = self.rows.copy(), self.buckets.copy()
        return twin

    def where(self, position: int, value: str) -> tuple[Row, ...]:
        """The rows that hold `value` at `position`, sorted."""
        return self.buckets.get((position, value), ())

    def add(self, row: Row) -> None:
        """Make a fact true; a fact that is true already stays so."""
        if row not in self.rows:
            buckets = self.buckets
            self.rows.add(row)
            for key in enumerate(row):
                bucket = list(buckets.get(key, ()))
                insort(bucket, row)
                buckets[key] = tuple(bucket)

    def discard(self, row: Row) -> None:
        """Make a fact false; a fact that is false already stays so."""
        if row in self.rows:
            buckets = self.buckets
            self.rows.remove(row)
            for key in enumerate(row):
                buckets[key] = tuple([r for r in buckets[key] if r != row])


Facts = Mapping[str, Relation]
NOTHING = Relation()


def solve(query: Query, facts: Facts, bound: Bindings, depth: int = 0) -> Iterator[Bindings]:
    """All ways to bind the free variables of a conjunction, in the order of the TextWorld engine:
    atom after atom, the rows of each sorted by raw entity id.

    >>> inside = Relation([("egg", "fridge"), ("apple", "fridge")])
    >>> [b["o"] for b in solve((Atom("in", ("o", "r")),), {"in": inside}, {"r": "fridge"})]
    ['apple', 'egg']
    """
    atom = query[depth]
    variables = atom.variables
    relation = facts.get(atom.predicate, NOTHING)
    known = [(i, bound[v]) for i, v in enumerate(variables) if v in bound]
    last = depth + 1 == len(query)
    rows: Collection[Row]
    if len(known) == len(variables):
        if tuple([value for _, value in known]) in relation.rows:
            if last:
                yield bound
            else:
                yield from solve(query, facts, bound, depth + 1)
        return
    if not known:
        rows = sorted(relation.rows)
    else:
        rows = relation.buckets.get(known[0], ())
        if len(known) > 1:
            rows = [row for row in rows if all(row[i] == value for i, value in known)]
    for row in rows:
        more = {**bound, **dict(zip(variables, row, strict=True))}
        if last:
            yield more
        else:
            yield from solve(query, facts, more, depth + 1)


def holds(query: Query, facts: Facts, bound: Bindings) -> bool:
    """Whether a conjunction has a solution; the empty one has."""
    for depth, atom in enumerate(query):
        row = tuple([bound[v] for v in atom.variables if v in bound])
        if len(row) < len(atom.variables):
            return next(solve(query, facts, bound, depth), None) is not None
        if row not in facts.get(atom.predicate, NOTHING).rows:
            return False
    return True
