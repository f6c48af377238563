//! The papers in virtual time, and one row on real ports if allowed.

use longwire_report::{Row, Scalar};
use longwire_validate::{Driver, Findings, Paper, Settings, run};
use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;

fn found(paper: Paper, simulate: bool, only: &[&str]) -> Findings {
    let only: Vec<String> = only.iter().map(|text| (*text).to_owned()).collect();
    let settings = Settings {
        driver: Driver::AfPacket,
        simulate,
        quick: true,
        full: false,
        seed: 20_261_123,
        only: &only,
        list: false,
        say: &|_| (),
        stop: &AtomicBool::new(false),
    };
    run(paper, &settings)
}

fn is_measured(row: &Row) -> bool {
    row.measured.as_ref().is_some_and(|value| !matches!(value, Scalar::Text(_)))
}

fn assert_sound(findings: &Findings) {
    for row in &findings.rows {
        assert!(row.pass != Some(false) || row.extra.contains_key("claim"), "{row:?}");
        assert!(is_measured(row) || !row.notes.is_empty(), "not run, and nothing says why: {row:?}");
    }
}

#[test]
fn linkem_in_virtual_time_is_exact() {
    let findings = found(Paper::Linkem, true, &[]);
    assert_sound(&findings);
    let of = |table: &str| -> Vec<&Row> {
        findings.rows.iter().filter(|row| row.name.starts_with(table) && is_measured(row)).collect()
    };
    assert_eq!((of("table 5.1").len(), of("table 5.2").len(), of("table 5.6").len()), (9, 6, 8));
    for row in of("table 5.3").into_iter().chain(of("table 5.4")).chain(of("table 5.5")) {
        assert_eq!(row.error_percent, Some(0.0), "{row:?}");
    }
    for row in of("table 5.1") {
        // At most one packet of 12 144 bits.
        assert!(row.extra["bits_off"].as_u64().unwrap() <= 12_144, "{row:?}");
    }
    let links = of("fig 5.6").into_iter().chain(of("fig 5.8")).chain(of("beyond")).collect::<Vec<_>>();
    assert_eq!(links.len(), 17);
    for row in links {
        assert!(row.extra["worst_error_percent"].as_f64().unwrap().abs() < 0.01, "{row:?}");
    }
    let speed = findings.rows.iter().find(|row| row.name.starts_with("fig 5.2")).unwrap();
    assert_eq!(speed.measured, Some("not run".into()), "virtual time says nothing of speed");
}

#[test]
fn osaka_in_virtual_time() {
    let findings = found(Paper::Osaka, true, &[]);
    assert_sound(&findings);
    let losses =
        findings.rows.iter().filter(|row| row.name.starts_with("fig 5: loss set") && is_measured(row));
    assert_eq!(losses.count(), 6);
    let drawn: Vec<_> =
        findings.rows.iter().filter(|row| row.name.starts_with("fig 5") && is_measured(row)).collect();
    let seeds: BTreeSet<_> = drawn.iter().map(|row| row.extra["seeds"].to_string()).collect();
    assert_eq!(seeds.len(), drawn.len(), "each row has draws of its own");
    let known = |key: &str, kind: &str| {
        longwire_link::registry().iter().any(|spec| (spec.key, spec.kind) == (key, kind))
    };
    let ran = |name: &str| findings.rows.iter().any(|row| row.name.starts_with(name) && is_measured(row));
    assert_eq!(ran("RED of profile osaka"), known("queue", "red"));
    assert_eq!(ran("fig 5: loss drawn"), known("loss", "drawn"));
}

#[test]
fn cbcs_is_reproduced_and_those_that_promise_dominant_fairness_keep_it() {
    let findings = found(Paper::Cbcs, true, &[]);
    assert_sound(&findings);
    let of = |text: &str| -> Vec<&Row> {
        findings.rows.iter().filter(|row| row.name.contains(text) && is_measured(row)).collect()
    };
    // Five tables of three statistics for nine schedulers; the paper has two of them.
    let tables = of("table ");
    assert_eq!(
        (tables.len(), tables.iter().filter(|row| row.extra.contains_key("paper")).count()),
        (135, 30)
    );
    assert!(tables.iter().all(|row| row.extra["also"].as_f64().is_some_and(|also| also > 0.0)));
    let judged: Vec<_> = of("fairness").into_iter().filter(|row| row.pass == Some(true)).collect();
    assert_eq!(judged.len(), 12, "DRFQ twice, MR³ and GMR³, at three costs");
    let unfair = of("fairness, CPU cost ×20: cbcs,");
    assert!(unfair[0].measured.as_ref().and_then(Scalar::as_f64).unwrap() < 0.99, "{unfair:?}");
    assert_eq!((findings.plots.len(), of("facts").len()), (6, 3));
    // The paper's claim: five classes under each of eleven conditions, and none of our values in its column.
    let claims = of("claim, ");
    assert_eq!(claims.len(), 55);
    assert!(claims.iter().any(|row| row.extra["claim"] == "reproduced"));
    assert!(claims.iter().any(|row| row.extra["claim"] == "not reproduced" && row.pass == Some(false)));
    assert!(of("facts").iter().all(|row| !row.extra.contains_key("paper")));
    assert!(findings.summary[0].contains("headline"), "{:?}", findings.summary);
    assert!(findings.plots.iter().all(|plot| !plot.to_svg().contains("NaN")));
}

#[test]
fn only_what_is_asked_for_is_run() {
    let findings = found(Paper::Linkem, true, &["TABLE 5.2: base rtt, 64 bytes"]);
    assert_eq!(findings.rows.iter().filter(|row| is_measured(row)).count(), 1);
    assert!(findings.matched && findings.rows.len() > 50);
    let none = found(Paper::Osaka, true, &["table 5.2"]);
    assert!(!none.matched && none.plots.is_empty() && !none.rows.iter().any(is_measured));
}

#[test]
fn real_ports_carry_a_row_of_each_kind() {
    let able = longwire_lab::abilities().namespaces;
    if !able.available {
        println!("skipped: {}", able.reason);
        return;
    }
    let only = [
        "table 5.1: 2 Mbit/s, link layer",
        "table 5.2: base RTT, 64 bytes",
        "fig 5.8: links of 512 kbit/s",
        "fig 5.6, TCP: links of 2 Mbit/s",
    ];
    let findings = found(Paper::Linkem, false, &only);
    let rows: Vec<_> = findings.rows.iter().filter(|row| is_measured(row)).collect();
    assert_eq!(
        rows.len(),
        4,
        "{:?}",
        findings.rows.iter().filter(|row| row.pass == Some(false)).collect::<Vec<_>>()
    );
    let value = |row: &Row| row.measured.as_ref().and_then(Scalar::as_f64).unwrap();
    // Wide, because a shared machine may pause: traffic passed, at roughly the rate.
    assert!((1.5e6..2.5e6).contains(&value(rows[0])), "{:?}", rows[0]);
    assert!((1e3..1e9).contains(&value(rows[1])), "{:?}", rows[1]);
    assert_eq!(rows[2].extra["links"], 366, "{:?}", rows[2]);
    // Two pairs of ports with 47 flows each; none exceeds its link's rate, and together they use a good part.
    let bits = rows[3].extra["bits_per_second"].as_f64().unwrap();
    assert!(rows[3].extra["links"] == 94 && (20e6..94.0 * 2.04e6).contains(&bits), "{:?}", rows[3]);
}
