"""The grammar: relations out of relations, each with its text for Session.sql and for DuckDB."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from .aggregates import window_call
from .algebra import STRETCHES, periods_between
from .calls import Call
from .data import COLUMNS, IDS, PERIODS, DataSet
from .intervals import inequalities, period, predicate
from .scalars import INTEGERS, ORDERED, Scalars
from .spark_aggregates import spark_call
from .texts import Col, Rel, Text, fill, join, same, settled_of
from .windows import Window, duck_windows, random_window

ORDER_TYPES = ("smallint", "int", "bigint", "timestamp")
#: feature -> weight at the top of a statement
FEATURES = {
    "window": 5,
    "last_join": 4,
    "interval": 6,
    "multiway": 4,
    "group": 3,
    "union": 2,
    "join": 1,
    "simple": 2,
    "algebra": 3,
}
#: about as many rows as an intermediate result may have
MOST_ROWS = 3000

#: Names as a text writes them.
ODD_NAMES = (
    *(
        "`all`",
        "`distinct`",
        "`select`",
        "`from`",
        "`union`",
        "`window`",
        "`last`",
        "`rows_range`",
        "`maxsize`",
        "`open`",
    ),
    *(
        "`period`",
        "`overlaps`",
        "`contains`",
        "`x y`",
        "`a.b`",
        "`q``t`",
        "`1st`",
        "`é`",
        "`日本`",
        "`_pos`",
        "`0`",
        "`*`",
    ),
    *(
        "last",
        "maxsize",
        "open",
        "period",
        "before",
        "contains",
        "rows_range",
        "key",
        "position",
        "tag",
        "block",
        "pid",
    ),
)

Item = tuple[Text, Col]


@dataclass(frozen=True)
class Statement:
    """What to run: `views` are made before (name, query); `names` and `types` of the columns (None: not checked).
    If `ordered`, the rows come in this order."""

    sql: str
    duck: str
    args: dict[str, Any]
    views: tuple[tuple[str, str], ...]
    names: tuple[str, ...]
    types: tuple[str | None, ...]
    ordered: bool
    feature: str


@dataclass
class Generator:
    """Makes one statement over a data set; `empty` is the setting sqlext.interval.empty. Of `switches`, "names" gives
    columns names that are words of SQL or hold odd characters, "settings" compares with texts that hold quotes."""

    rng: random.Random
    data: DataSet
    empty: str = "drop"
    only: str | None = None
    switches: frozenset[str] = frozenset()
    scalars: Scalars = field(init=False)
    ctes: list[tuple[str, Text]] = field(default_factory=list)
    views: list[tuple[str, Text]] = field(default_factory=list)
    number: int = 0

    def __post_init__(self) -> None:
        self.scalars = Scalars(self.rng, quotes="settings" in self.switches)

    # ---- statements

    def statement(self) -> Statement:
        rng = self.rng
        feature = self.only or rng.choices(list(FEATURES), list(FEATURES.values()))[0]
        query = self.query(feature, rng.choice([0, 1, 1, 2, 2, 3]))
        names = ", ".join(c.name for c in query.cols)
        duck = f"SELECT {names} FROM ({query.text.duck})"
        ours = query.text.ours
        ordered = False
        if query.uniq is not None and rng.random() < 0.25:
            keys = [query.uniq + rng.choice(["", " DESC"])]
            sortable = [c for c in query.cols if c.role in ("value", "time", "key") and c.dtype != "boolean"]
            if sortable and rng.random() < 0.6:
                nulls = rng.choice([" NULLS FIRST", " NULLS LAST"])
                keys.insert(0, rng.choice(sortable).name + rng.choice([" ASC", " DESC"]) + nulls)
            tail = f" ORDER BY {', '.join(keys)}" + (
                f" LIMIT {rng.choice([0, 1, 2, 5, 10, 20, 20])}" if rng.random() < 0.5 else ""
            )
            ordered = True
            ours = f"SELECT * FROM ({ours}){tail}" if rng.random() < 0.3 else ours + tail
            duck += tail
        if self.ctes:
            ours = "WITH " + ", ".join(f"{n} AS ({t.ours})" for n, t in self.ctes) + " " + ours
        parts = [f"{n} AS MATERIALIZED ({t.duck})" for n, t in (*self.views, *self.ctes)]
        if parts:
            # views were made of what stood before them
            parts.sort(key=lambda part: int(re.match(r"[a-z]+(\d+)", part)[1]))  # type: ignore[index]
            duck = "WITH " + ", ".join(parts) + " " + duck
        rename = self.odd_names(" ".join([ours, *(t.ours for _, t in self.views)]))
        return Statement(
            rename(ours),
            duck,
            self.scalars.args,
            tuple((n, rename(t.ours)) for n, t in self.views),
            tuple(rename(c.name).strip("`").replace("``", "`") for c in query.cols),
            tuple(c.dtype or None for c in query.cols),
            ordered,
            feature,
        )

    def odd_names(self, text: str) -> Callable[[str], str]:
        """A renaming of some columns of our text; DuckDB's keeps the plain names."""
        if "names" not in self.switches:
            return lambda text: text
        found = sorted(set(re.findall(r"\b[a-z][a-z0-9]*_+\d+\b", text)))
        chosen = self.rng.sample(found, min(len(found), self.rng.randint(0, 6)))
        names = self.rng.sample(ODD_NAMES, len(chosen))
        own = {name.strip("`").lower(): old for old, name in zip(chosen, names, strict=True)}  # `open` is open
        odd = {old: name for old, name in zip(chosen, names, strict=True) if own[name.strip("`").lower()] == old}

        def rename(text: str) -> str:
            return re.sub(r"\b[a-z][a-z0-9]*_+\d+\b", lambda m: odd.get(m[0], m[0]), text)

        return rename

    # ---- relations

    def fresh(self, name: str) -> str:
        self.number += 1
        return f"{re.sub(r'_[0-9]+$', '', name)}_{self.number}"

    def alias(self) -> str:
        self.number += 1
        return f"{self.rng.choice('abrsq')}{self.number}"

    def table(self, limit: int = MOST_ROWS) -> Rel:
        fitting = [t for t in self.data.tables if t.rows.num_rows <= limit] or [
            min(self.data.tables, key=lambda t: t.rows.num_rows)
        ]
        # joins with tables of no or two rows soon have no rows left to compare
        filled = [t for t in fitting if t.rows.num_rows >= 8]
        table = self.rng.choice(filled if filled and self.rng.random() < 0.9 else fitting)
        periods = tuple((dtype, start, end) for dtype, start, end, _, _ in PERIODS)
        rows = table.rows.num_rows
        return Rel(same(table.name), COLUMNS, rows, "id", IDS, table.ordered, periods, is_table=True)

    def relation(self, depth: int, limit: int = MOST_ROWS) -> Rel:
        """Something for FROM."""
        rng = self.rng
        if depth <= 0 or rng.random() < 0.35:
            return self.table(limit)
        weights = {"simple": 4, "window": 3, "last_join": 2, "interval": 2, "join": 2, "group": 2, "union": 2}
        for _ in range(4):
            found = self.query(rng.choices(list(weights), list(weights.values()))[0], depth - 1)
            if found.rows <= limit:
                return self.standing(found)
        return self.table(limit)

    def identified(self, depth: int, limit: int = MOST_ROWS) -> Rel:
        """A relation whose rows can be told apart."""
        for _ in range(5):
            found = self.relation(depth, limit)
            if found.uniq is not None:
                return found
        return self.table(limit)

    def standing(self, query: Rel) -> Rel:
        """A query as something for FROM: in parentheses, as a CTE, as a view."""
        kind = self.rng.random()
        text = query.text
        # of a view no marker and no CTE can be read
        if kind < 0.06 and not re.search(r":p\d|\bcte\d", text.ours):
            self.number += 1
            name = f"vw{self.number}"
            self.views.append((name, text))
            return replace(query, text=same(name))
        if kind < 0.3:
            self.number += 1
            name = f"cte{self.number}"
            self.ctes.append((name, text))
            return replace(query, text=same(name))
        return replace(query, text=text.both("({})"))

    def query(self, feature: str, depth: int) -> Rel:
        maker: Callable[[int], Rel] = getattr(self, f"make_{feature}")
        return maker(depth)

    # ---- pieces

    def chosen(self, rel: Rel, alias: str, most: int = 7) -> list[Item]:
        """Some columns under new names, a period as a whole; the one that tells rows apart is left to the caller."""
        rng = self.rng
        usable = [c for c in rel.cols if c.role != "end" and c.name != rel.uniq] or rel.cols
        weights = {"key": 4, "time": 4, "value": 3, "special": 1, "payload": 1}
        ranked = sorted(usable, key=lambda c: rng.random() ** (1 / weights.get(c.role, 2)), reverse=True)
        items = [self.renamed(alias, c) for c in ranked[: rng.randint(min(3, most), most)]]
        for _, start, end in rng.sample(rel.periods, min(len(rel.periods), rng.choice([0, 1, 1, 2]))):
            items += [self.renamed(alias, rel.col(start)), self.renamed(alias, rel.col(end))]
        return items

    def renamed(self, alias: str, col: Col) -> Item:
        return same(col.at(alias)), replace(col, name=self.fresh(col.name))

    def unique_item(self, rel: Rel, alias: str) -> list[Item]:
        return [] if rel.uniq is None else [self.renamed(alias, rel.col(rel.uniq))]

    def pair_item(self, left: Rel, a: str, right: Rel, b: str) -> tuple[list[Item], int]:
        """A column that tells the rows of a join apart, if there is one, and what its values are below."""
        below = (left.uniq_below + 1) * (right.uniq_below + 1)
        if left.uniq is None or right.uniq is None or below > 1 << 50:
            return [], 0
        first, second = (f"coalesce(CAST({alias}.{r.uniq} AS BIGINT), -1)" for r, alias in ((left, a), (right, b)))
        text = same(f"({first} + 1) * {right.uniq_below + 1} + {second} + 1")
        return [(text, Col(self.fresh("u"), "bigint", "uniq"))], below

    def periods_of(self, items: list[Item], *rels: tuple[Rel, str]) -> tuple[tuple[str, str, str], ...]:
        names = {text.ours: col.name for text, col in items}
        return tuple(
            (dtype, names[f"{alias}.{start}"], names[f"{alias}.{end}"])
            for rel, alias in rels
            for dtype, start, end in rel.periods
            if f"{alias}.{start}" in names and f"{alias}.{end}" in names
        )

    def select(
        self, items: list[Item], source: Text, where: Text | None = None, place: str | None = None, hint: str = ""
    ) -> Text:
        head = join([fill("{0} AS " + col.name, text) for text, col in items], ", ")
        duck_head = head.duck + (f", {place} AS _pos" if place else "")
        tail = same("") if where is None else where.both(" WHERE {}")
        return Text(
            f"SELECT {hint}{head.ours} FROM {source.ours}{tail.ours}",
            f"SELECT {duck_head} FROM {source.duck}{tail.duck}",
        )

    def named(self, rel: Rel, alias: str) -> Text:
        """The relation under its alias, for FROM."""
        word = self.rng.choice(["", "", "AS "])
        return rel.text.both(f"{{}} {word}{alias}")

    def pairs(self, rel: Rel, alias: str) -> list[tuple[str, Col]]:
        return [(alias, c) for c in rel.cols if c.dtype]

    def computed(self, cols: list[tuple[str, Col]]) -> list[Item]:
        """A column of an expression, now and then."""
        rng = self.rng
        found: list[Item] = []
        ints = [(a, c) for a, c in cols if c.dtype == "int" and c.role in ("value", "key")]
        strings = [(a, c) for a, c in cols if c.dtype == "string"]
        if ints and rng.random() < 0.3:
            a, c = rng.choice(ints)
            found.append((same(f"coalesce({c.at(a)}, 0) * 2 + 1"), Col(self.fresh("e"), "int", "value")))
        if strings and rng.random() < 0.2:
            a, c = rng.choice(strings)
            found.append((same(f"{c.at(a)} || '!'"), Col(self.fresh("t"), "string", "payload")))
        if rng.random() < 0.2:
            condition = self.scalars.condition(cols, 0)
            text = condition.both("CASE WHEN {} THEN 'one' ELSE 'two' END")
            found.append((text, Col(self.fresh("w"), "string", "key")))
        return found

    def period_pair(self, left: Rel, right: Rel) -> tuple[str, tuple[str, str], tuple[str, str]] | None:
        """Periods of one type of both sides."""
        common = [(p, q) for p in left.periods for q in right.periods if p[0] == q[0]]
        if self.empty == "point":  # doubles have no next value
            common = [(p, q) for p, q in common if p[0] != "double"]
        if not common:
            return None
        (dtype, a, b), (_, c, d) = self.rng.choice(common)
        return dtype, (a, b), (c, d)

    def relates(self, left: Rel, a: str, right: Rel, b: str) -> Text | None:
        """A period predicate or plain inequalities between two relations."""
        rng = self.rng
        found = self.period_pair(left, right)
        if found is None:
            return None
        dtype, first, second = found
        ends = tuple(f"{a}.{n}" for n in first), tuple(f"{b}.{n}" for n in second)
        if rng.random() < 0.25:
            return inequalities(rng, *ends)  # type: ignore[arg-type]
        if rng.random() < 0.3:
            ends = ends[1], ends[0]
        return predicate(rng, dtype, *ends, empty=self.empty)  # type: ignore[arg-type]

    def exists(self, outer: Rel, alias: str, depth: int) -> Text:
        """A condition on `outer` with a subquery."""
        rng = self.rng
        inner = self.relation(depth, 200)
        b = self.alias()
        mine, theirs = self.pairs(outer, alias), self.pairs(inner, b)
        kind = rng.random()
        source = self.named(inner, b)
        if kind < 0.5:
            terms = self.scalars.keys(mine, theirs, 2)
            period = self.relates(outer, alias, inner, b) if rng.random() < 0.5 else None
            terms += [period] if period else []
            if not terms or rng.random() < 0.3:
                terms.append(self.scalars.residual(mine, theirs))
            where = join([t.both("({})") for t in terms], " AND ")
            word = rng.choice(["", "NOT "])
            return fill(f"{word}EXISTS (SELECT 1 FROM {{0}} WHERE {{1}})", source, where)
        same_type = [
            (c, e)
            for _, c in mine
            for _, e in theirs
            if c.dtype == e.dtype and c.dtype in (*INTEGERS, "string") and c.role == e.role
        ]
        if not same_type:
            return self.scalars.condition(mine)
        c, e = rng.choice(same_type)
        if kind < 0.8:
            where = self.scalars.condition(theirs).both(" WHERE {}") if rng.random() < 0.6 else same("")
            word = "NOT " if rng.random() < 0.3 else ""
            return fill(f"{c.at(alias)} {word}IN (SELECT {e.at(b)} FROM {{0}}{{1}})", source, where)
        keys = self.scalars.keys(mine, theirs, 1)
        keyed = join(keys, " AND ").both(" WHERE {}") if keys else same("")
        op, name = rng.choice(["<", ">=", "="]), rng.choice(["min", "max"])
        return fill(f"{c.at(alias)} {op} (SELECT {name}({e.at(b)}) FROM {{0}}{{1}})", source, keyed)

    def where(self, rel: Rel, alias: str, depth: int, share: float = 0.5) -> Text | None:
        rng = self.rng
        if rng.random() >= share:
            return None
        return (
            self.exists(rel, alias, depth - 1) if rng.random() < 0.3 else self.scalars.condition(self.pairs(rel, alias))
        )

    # ---- features

    def make_simple(self, depth: int) -> Rel:
        rel, a = self.relation(depth), self.alias()
        items = [*self.unique_item(rel, a), *self.chosen(rel, a), *self.computed(self.pairs(rel, a))]
        uniq = items[0][1].name if rel.uniq is not None else None
        if self.rng.random() < 0.25 and rel.periods:
            text = self.relates(rel, a, rel, a)
            if text is not None:
                items.append((text, Col(self.fresh("z"), "boolean", "key")))
        condition = self.where(rel, a, depth, 0.5)
        plain = condition is None or "SELECT" not in condition.ours
        ordered = rel.ordered and plain
        text = self.select(items, self.named(rel, a), condition, "_pos" if ordered else None)
        periods = self.periods_of(items, (rel, a))
        return Rel(text, tuple(c for _, c in items), rel.rows, uniq, rel.uniq_below, ordered, periods)

    def make_window(self, depth: int) -> Rel:
        rng = self.rng
        rel = self.identified(depth, 120)
        while rel.uniq is None or not self._orders(rel) or not rel.of_role("key") or not all(c.dtype for c in rel.cols):
            rel = self.table(120)
        alias = self.alias()
        source = self.named(rel, alias)
        lefts: Rel | None = None
        if rng.random() < 0.15:
            lefts, alias = self.ordered_table(120), ""
            rel, source = self.last_joined(lefts, depth)
        dot = f"{alias}." if alias else ""
        keys = [c.name for c in rel.of_role("key")]
        orders = self._orders(rel)
        condition = self.scalars.condition(self.pairs(rel, alias)) if rng.random() < 0.4 else None
        windows, calls, sources, definitions, items = [], [], {}, [], []
        for number in range(rng.choice([1, 1, 1, 2, 3])):
            # a source over a LAST JOIN may have the columns of its left side alone
            unions = [
                self.conforming(lefts if lefts and rng.random() < 0.5 else rel, depth - 1)
                for _ in range(rng.choice([0, 1, 1, 1, 2, 3]))
            ]
            window = random_window(
                rng,
                tuple(rng.sample(keys, min(len(keys), rng.choice([0, 1, 1, 1, 1, 1, 2, 2])))),
                orders,
                [c for c in settled_of(rel.cols) if c.dtype in ORDERED],
                null_times=self.data.null_times or not rel.is_table,
                unions=bool(unions),
            )
            windows.append(window)
            sources[number] = [(u.duck, place) for u, place in unions]
            definitions.append(f"w{number} AS {window.ours([u.ours for u, _ in unions], rng.choice(['', alias]))}")
            for _ in range(rng.randint(1, 4)):
                typed = [c for c in rel.cols if c.dtype]
                if rng.random() < 0.45:
                    call = spark_call(self.scalars, typed, alias, ranked=not window.ties)
                else:
                    call = window_call(self.scalars, typed, alias=alias)
                name = self.fresh("f")
                calls.append((number, call, name))
                items.append((call, number, name))
        kept = [c for c in rel.cols if c.role != "end" and c.name != rel.uniq]
        kept = [rel.col(rel.uniq), *rng.sample(kept, min(len(kept), rng.randint(1, 5)))]
        periods = rng.sample(rel.periods, min(len(rel.periods), rng.choice([0, 1])))
        kept += [rel.col(end) for _, *ends in periods for end in ends]
        named = dict.fromkeys(number for _, number, _ in items)
        inline = rng.random() < 0.2 and len(windows) == 1

        def over(number: int) -> str:
            return definitions[number].split(" AS ", 1)[1] if inline else f"w{number}"

        shown = [f"{dot}{c.name} AS {c.name}" for c in kept]
        shown += [f"{call.ours} OVER {over(number)} AS {name}" for call, number, name in items]
        tail = "" if condition is None else f" WHERE {condition.ours}"
        defined = [definitions[n] for n in named]
        if rng.random() < 0.1:
            defined.append(f"unused AS {definitions[0].split(' AS ', 1)[1]}")
        tail += "" if inline else " WINDOW " + ", ".join(defined)
        ours = f"SELECT {', '.join(shown)} FROM {source.ours}{tail}"
        rows = source.duck + ("" if condition is None else f" WHERE {condition.duck}")
        place = f"{dot}_pos" if rel.ordered else f"{dot}{rel.uniq}"
        duck = duck_windows(rows, place, sources, windows, calls, [c.name for c in kept], False)
        cols = (*kept, *(Col(name, call.dtype or "", _role(call)) for call, _, name in items))
        return Rel(Text(ours, duck), cols, rel.rows, rel.uniq, rel.uniq_below, False, tuple(periods))

    def ordered_table(self, limit: int) -> Rel:
        """A table whose rows have an input order, beyond the limit if need be."""
        for size in (limit, MOST_ROWS):
            for _ in range(12):
                found = self.table(size)
                if found.ordered:
                    return found
        found = self.table()
        kept = next((t for t in self.data.tables if t.ordered), None)
        return found if kept is None else replace(found, text=same(kept.name), rows=kept.rows.num_rows, ordered=True)

    def last_joined(self, left: Rel, depth: int) -> tuple[Rel, Text]:
        """``left LAST JOIN ...`` for windows over it: the columns of both sides, and the text for FROM. Names of the
        right side are fresh, so that all can be written without their relation."""
        for _ in range(20):
            right = self.make_simple(depth - 1)
            if right.uniq is not None and all(c.dtype for c in right.cols):
                break
        else:
            return left, left.text
        right = self.standing(right)
        a, b = self.alias(), self.alias()
        source = self._last(self.named(left, a), [(left, a)], right, b)
        items = [f"{a}.{c.name} AS {c.name}" for c in left.cols] + [f"{b}.{c.name} AS {c.name}" for c in right.cols]
        flat = f"(SELECT {', '.join(items)}, {a}._pos AS _pos FROM {source.duck})"
        others = tuple(replace(c, role="value" if c.role in ("uniq", "time") else c.role) for c in right.cols)
        return replace(left, cols=left.cols + others, is_table=False), Text(source.ours, flat)

    def _orders(self, rel: Rel) -> list[Col]:
        """Columns that a window can be ordered by so that its rows have one order."""
        if rel.ordered:
            return [c for c in rel.cols if c.role == "time" and c.dtype in ORDER_TYPES]
        return [c for c in rel.cols if c.name == rel.uniq and c.dtype in ORDER_TYPES]

    def conforming(self, rel: Rel, depth: int) -> tuple[Text, str]:
        """A source of UNION for windows over `rel`, and what orders its rows in DuckDB."""
        rng = self.rng
        if rel.is_table and rng.random() < 0.6:
            tables = [t for t in self.data.tables if t.rows.num_rows <= 60 and (t.ordered or not rel.ordered)]
            if tables:
                table = rng.choice(tables)
                return same(table.name), "_pos" if table.ordered else "id"
        for _ in range(6):
            other = self.identified(depth, 60)
            narrow = rel.col(rel.uniq).dtype != "bigint" if rel.uniq is not None else False
            if (other.ordered or not rel.ordered) and not (narrow and other.uniq_below >= 1 << 31):
                break
        else:
            other = self.ordered_table(60)
        a = self.alias()
        items: list[Item] = []
        for col in rel.cols:
            fitting = [c for c in other.cols if c.dtype == col.dtype and c.dtype and c.role == col.role]
            if col.name == rel.uniq and other.uniq is not None:
                text = same(f"CAST({a}.{other.uniq} AS {col.dtype})")
            elif fitting and rng.random() < 0.9:
                text = same(rng.choice(fitting).at(a))
            else:
                text = Text(f"CAST(NULL AS {col.dtype})", f"CAST(NULL AS {_duck_type(col.dtype)})")
            items.append((text, col))
        condition = self.scalars.condition(self.pairs(other, a)) if rng.random() < 0.4 else None
        place = f"{a}._pos" if other.ordered else f"CAST({a}.{other.uniq} AS BIGINT)"
        text = self.select(items, self.named(other, a), condition, place)
        return text.both("({})"), "_pos"

    def make_last_join(self, depth: int) -> Rel:
        rng = self.rng
        left, a = self.relation(depth, 300), self.alias()
        source = self.named(left, a)
        aliases = [(left, a)]
        rels: list[Rel] = []
        for _ in range(rng.choice([1, 1, 1, 2, 3])):
            right, b = self.identified(depth - 1, 60), self.alias()
            source = self._last(source, aliases, right, b)
            aliases.append((right, b))
            rels.append(right)
            if rng.random() < 0.12:
                other, c = self.table(20), self.alias()
                terms = self.scalars.keys(self.pairs(left, a), self.pairs(other, c), 1)
                terms.append(same(f"{c}.id = {rng.randint(0, 255)}"))
                on = join(terms, " AND ")
                source = fill("{0} LEFT JOIN {1} ON {2}", source, self.named(other, c), on)
                aliases.append((other, c))
        items = self.unique_item(left, a)
        for rel, alias in aliases:
            items += [*self.chosen(rel, alias, 4), *(self.unique_item(rel, alias) if alias != a else [])]
        everything = [pair for rel, alias in aliases for pair in self.pairs(rel, alias)]
        items += self.computed(everything)
        condition = self.scalars.condition(everything) if rng.random() < 0.3 else None
        text = self.select(items, source, condition)
        uniq = items[0][1].name if left.uniq is not None else None
        cols = tuple(replace(c, role="value" if c.role == "uniq" and c.name != uniq else c.role) for _, c in items)
        return Rel(text, cols, left.rows, uniq, left.uniq_below, False, self.periods_of(items, *aliases))

    def _last(self, source: Text, aliases: list[tuple[Rel, str]], right: Rel, b: str) -> Text:
        """``source LAST JOIN right``; in DuckDB each relation so far is a struct called like its alias."""
        rng = self.rng
        orders = [c for c in right.cols if c.role == "time" and c.dtype in ORDER_TYPES]
        mine, theirs = [p for rel, alias in aliases for p in self.pairs(rel, alias)], self.pairs(right, b)
        terms = self.scalars.keys(mine, theirs, 2) if rng.random() < 0.93 else []
        key, direction, place = "", "", f", {b}._pos DESC" if right.ordered else ""
        if not right.ordered:
            key = f"{b}.{right.uniq}"
            if orders and right.uniq_below < 1_000_000 and rng.random() < 0.7:
                integers = [c for c in orders if c.dtype != "timestamp"]
                if integers:
                    time = f"coalesce(CAST({rng.choice(integers).at(b)} AS BIGINT), -99)"  # NULL keys would be ties
                    key = f"{time} * 1000000 + {b}.{right.uniq}"
        elif orders and rng.random() < 0.85:
            key = rng.choice(orders).at(b)
        bound, forward = None, False  # of an ASOF JOIN
        if orders and rng.random() < 0.7:
            # most ask for the state at a time: a bound on what the rows are ordered by
            c = next((c for c in orders if c.at(b) == key and rng.random() < 0.7), rng.choice(orders))
            before = [x for x in mine if x[1].role == "time" and x[1].dtype == c.dtype]
            if before:
                alias, col = rng.choice(before)
                operator = rng.choice(["<", "<=", "<=", ">", ">="])
                term = same(f"{c.at(b)} {operator} {col.at(alias)}")
                if c.at(b) == key and rng.random() < 0.4:
                    bound, forward = term, operator[0] == ">"
                else:
                    terms.append(term)
        if rng.random() < 0.35 or not (terms or bound):
            terms.append(self.scalars.residual(mine, theirs))
        if rng.random() < 0.1:
            rel, alias = rng.choice(aliases)
            period = self.relates(rel, alias, right, b)
            terms += [period] if period is not None else []
        rng.shuffle(terms)
        terms = [t.both("({})") if " OR " in t.ours else t for t in terms]
        on = join(terms if bound is None else [*terms, bound], " AND ")
        if key:
            direction = rng.choice(["", "", " ASC", " DESC"]) if bound is None else " DESC" if forward else ""
        # NULL keys lose, and if there is no order key that tells rows of equal uniq-less keys apart, uniq does
        rank = f"{key} {'ASC' if direction == ' DESC' else 'DESC'} NULLS LAST" if key else ""
        if not right.ordered:
            rank += f", {b}.{right.uniq} DESC"
        ranks = (rank + place).lstrip(", ") or "1"
        named = self.named(right, b)
        by = f" ORDER BY {key}{direction}" if key else ""
        names = ", ".join(alias for _, alias in aliases)
        inner = f"(SELECT {names}, row_number() OVER () AS _n FROM {source.duck})"
        ranked = (
            f"SELECT {', '.join(f'_q.{alias} AS {alias}' for _, alias in aliases)}, {b}, "
            f"row_number() OVER (PARTITION BY _n ORDER BY {ranks}) AS _rank "
            f"FROM {inner} _q LEFT JOIN {named.duck} ON {on.duck}"
        )
        duck = f"(SELECT {names}, {b} FROM ({ranked}) WHERE _rank = 1)"
        if bound is not None:
            rest = f" ON {join(terms, ' AND ').ours}" if terms else ""
            return Text(f"{source.ours} ASOF LEFT JOIN {named.ours} MATCH_CONDITION ({bound.ours}){rest}", duck)
        return Text(f"{source.ours} LAST JOIN {named.ours}{by} ON {on.ours}", duck)

    def make_interval(self, depth: int) -> Rel:
        rng = self.rng
        left, a = self.with_periods(depth, 120), self.alias()
        right, b = self.with_periods(depth - 1, 60), self.alias()
        condition = self.relates(left, a, right, b)
        for _ in range(20):
            if condition is not None:
                break
            left, right = self.table(120), self.table(60)
            condition = self.relates(left, a, right, b)
        assert condition is not None
        mine, theirs = self.pairs(left, a), self.pairs(right, b)
        terms = [condition, *self.scalars.keys(mine, theirs, 2)]
        while rng.random() < 0.3:
            terms.append(self.scalars.residual(mine, theirs))
        rng.shuffle(terms)
        on = join([t.both("({})") if " OR " in t.ours else t for t in terms], " AND ")
        hint = rng.choice(["", "", "", "/*+ SWEEP */ ", "/*+ NO_SWEEP */ "])
        return self._joined(left, a, right, b, on, hint, count_form=rng.random() < 0.3)

    def make_algebra(self, depth: int) -> Rel:
        """An operation over the periods of a key, with more columns and a condition around it."""
        rng = self.rng
        operation = rng.choice(list(STRETCHES))
        left, right = self.with_periods(depth, 300), self.with_periods(depth - 1, 60)
        found = self.period_pair(left, right)
        while found is None:
            left, right = self.table(300), self.table(60)
            found = self.period_pair(left, right)
        dtype, first, second = found
        shared = [(c, d) for c in left.of_role("key") for d in right.of_role("key") if c.dtype == d.dtype != "double"]
        pairs = rng.sample(shared, min(len(shared), rng.choice([0, 1, 1, 2])))
        keys = [replace(c, name=self.fresh(c.name), role="key") for c, _ in pairs]
        names = [key.name for key in keys]
        sides = [self._periods(left, dtype, first, [c for c, _ in pairs], names)]
        if operation == "EXCEPT":
            sides.append(self._periods(right, dtype, second, [d for _, d in pairs], names))
        duck = periods_between(operation, names or ["_k"], sides[0].duck, sides[1].duck if sides[1:] else None)
        word = "NORMALIZE" if operation == "EXCEPT" else operation
        ours, alias = f"{word}({' EXCEPT '.join(side.ours for side in sides)})", self.alias()
        ends = [Col(name, dtype, "end") for name in first]
        counts = [Col("concurrent", "bigint", "value")] if operation == "CONCURRENT" else []
        shown = ", ".join([*names, f"_s AS {first[0]}", f"_e AS {first[1]}", *(["_n AS concurrent"] if counts else [])])
        source = Text(f"{ours} {alias}", f"(SELECT {shown} FROM ({duck})) {alias}")
        columns = [*keys, *ends, *counts]
        items = [self.renamed(alias, col) for col in columns]
        where = self.scalars.condition([(alias, col) for col in columns]) if rng.random() < 0.4 else None
        periods = ((dtype, items[len(keys)][1].name, items[len(keys) + 1][1].name),)
        return Rel(
            self.select(items, source, where), tuple(col for _, col in items), left.rows, None, 0, False, periods
        )

    def _periods(self, rel: Rel, dtype: str, ends: tuple[str, str], keys: list[Col], names: list[str]) -> Text:
        """An input of an operation: for DuckDB its keys (_k without any) and the ends _s and _e."""
        a = self.alias()
        source = self.named(rel, a)
        written = ", ".join(f"{key.at(a)} AS {name}" for key, name in zip(keys, names, strict=True))
        start, end = (f"{a}.{name}" for name in ends)
        last = period(self.rng, dtype, start, end, empty=self.empty)[2] if self.empty == "point" else end
        ours = f"{source.ours}{f' PARTITION BY {written}' if keys else ''} PERIOD ({start}, {end})"
        nan = f" WHERE NOT isnan({last})" if dtype == "double" else ""
        return Text(ours, f"SELECT {written or '1 AS _k'}, {start} AS _s, {last} AS _e FROM {source.duck}{nan}")

    def with_periods(self, depth: int, limit: int) -> Rel:
        for _ in range(5):
            found = self.relation(depth, limit)
            if found.periods:
                return found
        return self.table(limit)

    def _joined(self, left: Rel, a: str, right: Rel, b: str, on: Text, hint: str, *, count_form: bool) -> Rel:
        """A join of two relations, of any kind; or an aggregate over it."""
        rng = self.rng
        kind = rng.choice(
            ["JOIN", "JOIN", ", WHERE", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"]
        )
        first, second = self.named(left, a), self.named(right, b)
        where: Text | None = None
        if kind in ("LEFT SEMI JOIN", "LEFT ANTI JOIN"):
            duck = kind.removeprefix("LEFT ")
            source = Text(
                f"{first.ours} {kind} {second.ours} ON {on.ours}", f"{first.duck} {duck} {second.duck} ON {on.duck}"
            )
            items = [*self.unique_item(left, a), *self.chosen(left, a)]
            where = self.scalars.condition(self.pairs(left, a)) if rng.random() < 0.25 else None
            uniq = items[0][1].name if left.uniq is not None else None
            text = self.select(items, source, where, hint=hint)
            periods = self.periods_of(items, (left, a))
            return Rel(text, tuple(c for _, c in items), left.rows, uniq, left.uniq_below, False, periods)
        everything = [*self.pairs(left, a), *self.pairs(right, b)]
        if kind == ", WHERE":
            source, where = fill("{0}, {1}", first, second), on
            if rng.random() < 0.3:
                where = fill("{0} AND ({1})", where, self.scalars.condition(everything))
        else:
            source = fill(f"{{0}} {kind} {{1}} ON {{2}}", first, second, on)
            where = self.scalars.condition(everything) if rng.random() < 0.25 else None
        rows = left.rows * max(1, right.rows) // 4 + left.rows
        if count_form or rows > MOST_ROWS * 2:
            side = rng.choice([(left, a), (right, b)])
            return self._grouped(*side, source, where, hint, everything)
        pair, below = self.pair_item(left, a, right, b)
        items = [*pair, *self.chosen(left, a, 4), *self.chosen(right, b, 4), *self.computed(everything)]
        if rng.random() < 0.5:
            items += self.unique_item(left, a) + self.unique_item(right, b)
        uniq = pair[0][1].name if pair else None
        cols = tuple(replace(c, role="value") if c.role == "uniq" and c.name != uniq else c for _, c in items)
        text = self.select(items, source, where, hint=hint)
        periods = self.periods_of(items, (left, a), (right, b))
        return Rel(text, cols, rows, uniq, below, False, periods)

    def _grouped(
        self, rel: Rel, alias: str, source: Text, where: Text | None, hint: str, everything: list[tuple[str, Col]]
    ) -> Rel:
        """Spark's aggregates by columns of one relation of a join."""
        rng = self.rng
        keys = [rel.col(rel.uniq)] if rel.uniq is not None and rng.random() < 0.5 else []
        keys = keys or rng.sample(rel.of_role("key"), min(len(rel.of_role("key")), rng.choice([0, 1, 1, 2])))
        items = [self.renamed(alias, c) for c in keys]
        items += [(call, col) for call, col in self.aggregates(everything)]
        text = self.select(items, source, where, hint=hint)
        if keys:
            text = text.both("{} GROUP BY " + ", ".join(c.at(alias) for c in keys))
        if keys and rng.random() < 0.2:
            text = text.both("{} HAVING count(*) > " + str(rng.randint(1, 3)))
        cols = tuple(replace(c, role="value") if c.role == "uniq" else c for _, c in items)
        return Rel(text, cols, max(1, rel.rows), None, 0, False, ())

    def aggregates(self, cols: list[tuple[str, Col]]) -> list[Item]:
        """One to three of Spark's aggregates with their types."""
        rng = self.rng
        found: list[Item] = [(same("count(*)"), Col(self.fresh("n"), "bigint"))] if rng.random() < 0.7 else []
        numbers = [
            (a, c) for a, c in cols if c.dtype in (*INTEGERS, "double") and c.role in ("value", "key", "uniq", "end")
        ]
        numbers = [(a, c) for a, c in numbers if c.dtype != "double" or c.role == "value"]
        sortable = [(a, c) for a, c in cols if c.role in ("value", "key", "time", "end") and c.dtype != "boolean"]
        for _ in range(rng.randint(0 if found else 1, 3)):
            name = rng.choice(["sum", "count", "avg", "min", "max", "count_distinct"])
            pool = numbers if name in ("sum", "avg") else sortable
            if not pool:
                continue
            a, c = rng.choice(pool)
            inside = c.at(a)
            if name == "sum" and c.dtype == "int" and rng.random() < 0.3:
                inside = f"{inside} + 1"
            dtype = {"sum": "double" if c.dtype == "double" else "bigint", "avg": "double"}.get(name, c.dtype)
            if name.startswith("count"):
                dtype = "bigint"
            text = f"count(DISTINCT {inside})" if name == "count_distinct" else f"{name}({inside})"
            found.append((same(text), Col(self.fresh("g"), dtype, "value")))
        return found or [(same("count(*)"), Col(self.fresh("n"), "bigint"))]

    def make_join(self, depth: int) -> Rel:
        """An ordinary join of two relations."""
        rng = self.rng
        left, a, right, b = self.relation(depth, 120), self.alias(), self.relation(depth - 1, 60), self.alias()
        mine, theirs = self.pairs(left, a), self.pairs(right, b)
        terms = self.scalars.keys(mine, theirs, 2)
        if not terms or rng.random() < 0.3:
            terms.append(self.scalars.residual(mine, theirs))
        on = join([t.both("({})") if " OR " in t.ours else t for t in terms], " AND ")
        return self._joined(left, a, right, b, on, "", count_form=rng.random() < 0.4)

    def make_multiway(self, depth: int) -> Rel:
        """Three to five relations on keys, with subqueries, as rows or under an aggregate."""
        rng = self.rng
        count, limit = rng.choice([3, 3, 3, 4, 5]), 40
        rels = [(self.relation(depth - 1 if i == 0 else 0, limit), self.alias()) for i in range(count)]
        source = self.named(*rels[0])
        terms: list[Text] = []
        rows, commas = float(max(1, rels[0][0].rows)), False
        for place, (rel, alias) in enumerate(rels[1:], 1):
            previous, before = rels[rng.randrange(place)]
            keys = self.scalars.keys(self.pairs(previous, before), self.pairs(rel, alias), rng.choice([1, 1, 2]))
            if not keys or (rng.random() < 0.3 and place == count - 1):
                other, third = rels[rng.randrange(place)]
                keys += self.scalars.keys(self.pairs(other, third), self.pairs(rel, alias), 1)
            if not keys and rel.uniq is not None:
                keys = [same(f"{alias}.{rel.uniq} % 4 = {rng.randint(0, 3)}")]
            if rows * rel.rows / 3 > 60_000 and rel.uniq is not None:
                keys.append(same(f"{alias}.{rel.uniq} % 8 = {rng.randint(0, 7)}"))
            rows *= max(1.0, rel.rows / 3)
            # a comma binds weaker than JOIN: behind one, ON would not reach what stands before it
            commas = commas or rng.random() < 0.4
            if commas or not keys:
                commas = True
                source = fill("{0}, {1}", source, self.named(rel, alias))
                terms += keys
            else:
                on = join(keys, " AND ")
                kind = rng.choice(["JOIN", "INNER JOIN", "JOIN", "LEFT JOIN"])
                source = fill(f"{{0}} {kind} {{1}} ON {{2}}", source, self.named(rel, alias), on)
        everything = [pair for rel, alias in rels for pair in self.pairs(rel, alias)]
        if rng.random() < 0.3:
            terms.append(self.scalars.condition(everything, 0))
        if rng.random() < 0.3:
            (first, a), (second, b) = rng.sample(rels, 2)
            terms.append(self.scalars.residual(self.pairs(first, a), self.pairs(second, b)))
        while rng.random() < 0.25:
            rel, alias = rng.choice(rels)
            terms.append(self.exists(rel, alias, 0))
        if rng.random() < 0.1:
            (first, a), (second, b) = rng.sample(rels, 2)
            period = self.relates(first, a, second, b)
            terms += [period] if period is not None else []
        where = join([t.both("({})") if " OR " in t.ours else t for t in terms], " AND ") if terms else None
        hint = rng.choice(["/*+ NO_UMJOIN */ ", "/*+ UMJOIN */ "]) if rng.random() < 0.2 else ""
        side = rng.choice(rels)
        if rows > MOST_ROWS or rng.random() < 0.55:
            return self._grouped(*side, source, where, hint, everything)
        items = [item for rel, alias in rels for item in self.chosen(rel, alias, 2)]
        items += [item for rel, alias in rels for item in self.unique_item(rel, alias)]
        cols = tuple(replace(c, role="value") if c.role == "uniq" else c for _, c in items)
        if rng.random() < 0.15:
            hint += "DISTINCT "
        text = self.select(items, source, where, hint="")
        if hint:
            # DISTINCT is no hint, and DuckDB knows the same word
            hints, _, distinct = hint.rpartition("*/ ") if "*/ " in hint else ("", "", hint)
            shown = (hints + "*/ " if hints else "") + distinct
            text = Text(
                text.ours.replace("SELECT ", f"SELECT {shown}", 1),
                text.duck.replace("SELECT ", f"SELECT {distinct}", 1),
            )
        return Rel(text, cols, int(rows), None, 0, False, self.periods_of(items, *rels))

    def make_group(self, depth: int) -> Rel:
        """GROUP BY with our functions and Spark's."""
        rng = self.rng
        rel = self.identified(depth, MOST_ROWS)
        a = self.alias()
        usable = [*rel.of_role("key"), *rel.of_role("special")]
        keys = rng.sample(usable, min(len(usable), rng.choice([0, 1, 1, 1, 2])))
        named = [self.renamed(a, c) for c in keys]
        calls = [
            (window_call(self.scalars, [c for c in rel.cols if c.dtype], alias=a, group=True), self.fresh("g"))
            for _ in range(rng.randint(1, 4))
        ]
        condition = self.scalars.condition(self.pairs(rel, a)) if rng.random() < 0.4 else None
        tail = f" GROUP BY {', '.join(c.at(a) for c in keys)}" if keys else ""
        having = f" HAVING count(*) > {rng.randint(1, 3)}" if keys and rng.random() < 0.25 else ""
        ours_items = [f"{t.ours} AS {c.name}" for t, c in named] + [f"{call.ours} AS {n}" for call, n in calls]
        ours = f"SELECT {', '.join(ours_items)} FROM {rel.text.ours} {a}"
        ours += ("" if condition is None else f" WHERE {condition.ours}") + tail + having
        place = f"{a}._pos" if rel.ordered else f"{a}.{rel.uniq}"
        inner = f"SELECT *, row_number() OVER (ORDER BY {place}) AS _i FROM {rel.text.duck} {a}"
        inner += "" if condition is None else f" WHERE {condition.duck}"
        duck_items = [f"e.{k.name} AS {c.name}" for k, (_, c) in zip(keys, named, strict=True)]
        duck_items += [f"{call.duck} AS {n}" for call, n in calls]
        duck = f"SELECT {', '.join(duck_items)} FROM ({inner}) e" + tail.replace(f"{a}.", "e.") + having
        cols = tuple(c for _, c in named) + tuple(Col(n, call.dtype or "", _role(call)) for call, n in calls)
        return Rel(Text(ours, duck), cols, min(rel.rows, 20) + 1, None, 0, False, ())

    def make_union(self, depth: int) -> Rel:
        """UNION ALL, UNION, INTERSECT or EXCEPT of two queries with columns of the same types."""
        rng = self.rng
        first = self.identified(depth, 300)
        second = self.identified(depth, 300)
        a, b = self.alias(), self.alias()
        items: list[tuple[Item, Item]] = []
        usable = [c for c in first.cols if c.dtype and c.dtype != "binary"]
        for c in rng.sample(usable, min(8, len(usable))):
            fitting = [e for e in second.cols if e.dtype == c.dtype and e.role == c.role]
            if fitting and c.name != first.uniq:
                other = rng.choice(fitting)
                name = self.fresh(c.name)
                items.append(((same(c.at(a)), replace(c, name=name)), (same(other.at(b)), replace(other, name=name))))
        word = rng.choice(["UNION ALL", "UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"])
        wide = word == "UNION ALL" or not items
        word = word if items else "UNION ALL"
        if wide:
            below = 2 * max(first.uniq_below, second.uniq_below)
            name = self.fresh("u")
            uniq = Col(name, "bigint", "uniq")
            pair = tuple(
                (same(f"CAST({alias}.{r.uniq} AS BIGINT) * 2 + {side}"), uniq)
                for side, (alias, r) in enumerate(((a, first), (b, second)))
            )
            items.insert(0, pair)  # type: ignore[arg-type]
        items = (
            items
            if wide
            else [i for i in items if i[0][1].dtype in ("int", "bigint", "smallint", "string", "boolean", "date")]
            or items[:1]
        )
        conditions = [self.where(r, alias, depth, 0.4) for r, alias in ((first, a), (second, b))]
        one = self.select([i for i, _ in items], self.named(first, a), conditions[0])
        two = self.select([i for _, i in items], self.named(second, b), conditions[1])
        text = fill(f"{{0}} {word} {{1}}", one, two)
        cols = tuple(i[1] for i, _ in items)
        if wide:
            return Rel(text, cols, first.rows + second.rows, cols[0].name, below, False, ())
        return Rel(text, cols, first.rows + second.rows, None, 0, False, ())


def _role(call: Call) -> str:
    return "value" if call.dtype in ("int", "bigint", "smallint", "string") else "payload"


_DUCK_TYPES = {
    "timestamp": "TIMESTAMPTZ",
    "timestamp_ntz": "TIMESTAMP",
    "string": "VARCHAR",
    "binary": "BLOB",
    "struct<a:int,b:string>": "STRUCT(a INTEGER, b VARCHAR)",
}


def _duck_type(dtype: str) -> str:
    if dtype.startswith("array<"):
        return f"{_duck_type(dtype[len('array<') : -1])}[]"
    return _DUCK_TYPES.get(dtype, dtype)


__all__ = ["FEATURES", "Generator", "Statement", "Window"]
