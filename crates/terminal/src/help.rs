//! The help.

/// Keys, and what they do; a line without a key is a title.
pub(crate) const LINES: &[(&str, &str)] = &[
    ("", "Tables"),
    ("Tab  Shift-Tab", "next table, the one before: links, sources, ports, routers, events, …"),
    ("↑ ↓  j k", "select the next row, the one before"),
    ("PgUp PgDn Home End", "a page, to the first row, to the last row (g, G)"),
    ("← →  < >", "sort by the next column, by the one before; the first column is the scenario's order"),
    ("r", "turn the order round"),
    ("/", "search: a part of a name, or a pattern such as dsl*; Esc shows all"),
    ("", "Changes"),
    ("Enter  e", "change the selected object: rate=5mbit delay=40ms; Tab completes, Enter changes"),
    ("b", "change both directions of a duplex link"),
    ("", "Display"),
    ("p", "stop the numbers where they are, and go on"),
    ("Space", "count now"),
    ("?  h", "this help"),
    ("q", "leave; a run of this process ends only after a question"),
    ("Ctrl-C", "end: the run with it, if it is of this process"),
    ("", "Columns of links"),
    ("state", "down, idle, up, busy (above 70 % of the rate), full (above 97 %)"),
    ("in, out", "what comes and leaves, since the counters before the last ones"),
    ("queue", "packets that wait to be sent"),
    ("delay", "what a packet takes that comes now: the delay, and the queue at the link's rate"),
    ("p50, p99", "median and 99th percentile of that, over the samples of the last five minutes"),
    ("drops", "packets that were dropped, for whatever reason"),
    ("max late", "how much later than computed a packet left: Longwire's own error"),
];
