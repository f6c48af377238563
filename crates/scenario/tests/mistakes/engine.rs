//! Mistakes of the engine and of sources.

use super::{HOSTS, check};

#[test]
fn engine_and_sources() {
    let table = [
        ("[engine]\nworkers = 65", "4:11", "engine, workers: ", &["1 to 64"][..]),
        ("[engine]\nworkers = 2\nmapping = \"single\"", "5:11", "engine, mapping: ", &["\"parallel\""]),
        ("[engine]\nmapping = \"pipeline\"", "4:11", "engine, mapping: ", &["two workers", "workers = 2"]),
        ("[engine]\nmapping = \"paralel\"", "4:11", "engine, mapping: ", &["did you mean \"parallel\"?"]),
        (
            "[engine]\nbetween-workers = \"share\"",
            "4:19",
            "engine, between-workers: ",
            &["did you mean \"shared\"?"],
        ),
        ("[engine]\npool = \"1 kB\"", "4:8", "engine, pool: ", &["out of range", "from 1 MiB to 256 GiB"]),
        ("[engine]\npool = \"1 gib\"", "4:8", "engine, pool: ", &["unknown unit"]),
        ("[engine]\ncpus = [0, 1]", "4:12", "engine, cpus: ", &["2 processors for 1 worker"]),
        ("[engine]\nworkers = 2\ncpus = [3, 3]", "5:12", "engine, cpus: ", &["is given twice"]),
        ("[fidelity]\nshare = \"110 %\"", "4:9", "fidelity, share: ", &["out of range"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"",
            "4:8",
            "source \"a-b\", rate: ",
            &["either a rate or an interval"],
        ),
        ("[[source]]\nfrom = \"a\"\nto = \"a\"\nrate = \"1 Mbit/s\"", "5:6", "source", &["nothing leads"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"unlimited\"",
            "6:8",
            "source",
            &["can't send at unlimited"],
        ),
        ("[[source]]\nfrom = \"a\"\nto = \"b\"\ninterval = \"0 ms\"", "6:12", "source", &["0 apart"]),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nsize = \"9 B\"",
            "7:8",
            "source",
            &["60 B to"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\ncount = 2\nrate = \"1 Mbit/s\"",
            "4:8",
            "source",
            &["two sources"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nsource = \"::1\"\nrate = \"1 Mbit/s\"",
            "5:6",
            "source",
            &["families"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check(HOSTS, snippet, place, field, wanted);
    }
}

#[test]
fn models_of_sources() {
    let table = [
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"pareto\"\nrate = \"1 Mbit/s\"",
            "6:9",
            "source \"a-b\", model: ",
            &["pareto-on-off"][..],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"on-off\"\nrate = \"1 Mbit/s\"\non = \"1 s\"",
            "4:8",
            "source \"a-b\", off: ",
            &["on-off needs it", "Mean time off"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1 Mbit/s\"\nshape = 1.4",
            "7:9",
            "source \"a-b\", shape: ",
            &["the model cbr has no shape", "model = \"pareto-on-off\""],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"mmpp\"\ninterval = \"1 ms\"",
            "7:12",
            "source \"a-b\", interval: ",
            &["the model mmpp has no interval"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"mmpp\"\nrates = \"1 Mbit/s, fast\"",
            "7:9",
            "source \"a-b\", rates: ",
            &["fast"],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"replay\"\nfile = \"no.pcap\"",
            "7:8",
            "source \"a-b\", file: ",
            &["no.pcap: "],
        ),
        (
            "[[source]]\nfrom = \"a\"\nto = \"b\"\nmodel = \"cbr\"\npoisson = true\nrate = \"1 Mbit/s\"",
            "6:9",
            "source \"a-b\", model: ",
            &["poisson contradicts"],
        ),
    ];
    for (snippet, place, field, wanted) in table {
        check(HOSTS, snippet, place, field, wanted);
    }
}

/// Keys of an event that nothing would come of.
#[test]
fn events_do_what_their_keys_say() {
    let link = "[[link]]\nname = \"l\"\nbetween = [\"a\", \"b\"]\n[[at]]\ntime = \"1 s\"\n";
    let alone = "which stands alone and happens once";
    for (keys, place, field, wanted) in [
        ("link = \"l\"\nloss = \"1 %\"\ndrain = true", "10:9", "at \"1 s\", drain: ", "without remove"),
        ("remove = \"l\"\nstep = \"1 s\"", "6:1", "at \"1 s\": ", alone),
        ("remove = \"l\"\nfirst = 7", "6:1", "at \"1 s\": ", alone),
    ] {
        check(HOSTS, &format!("{link}{keys}"), place, field, &[wanted]);
    }
}
