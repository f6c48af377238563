use longwire_bench::engine::*;
use longwire_link::LinkConfig;
use std::time::Duration;
fn main() {
    let plain = LinkConfig::default().with_text("loss", "0 %").unwrap();
    let busy = plain.clone().with_text("rate", "100 Gbit/s").unwrap().with_text("delay", "10 ms").unwrap();
    let case = |links, config: &LinkConfig, shuffled, pool: u64| Case {
        links,
        config: config.clone(),
        shuffled,
        pool_bytes: pool << 20,
        time: Duration::from_millis(700),
        gap: None,
    };
    for (name, c) in [
        ("8 plain", case(8, &plain, false, 64)),
        ("8 busy", case(8, &busy, false, 256)),
        ("1M busy", case(1_000_000, &busy, true, 256)),
    ] {
        if std::env::args().nth(1).is_some_and(|a| !name.contains(&a)) {
            continue;
        }
        for _ in 0..3 {
            let o = run(&c).unwrap();
            println!(
                "{name}: {:.2} Mpps {:.0} B/link, conserved {} peak {} drops {:?} {:?}",
                o.packets_per_second / 1e6,
                o.bytes_per_link,
                o.report.is_conserved(),
                o.report.pool_peak,
                o.report.flow.drops,
                o.report.fidelity.as_ref().map(|f| (f.faithful, f.lateness.without_pauses))
            );
        }
    }
}
