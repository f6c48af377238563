//! What programs cost, and what a budget allows.

use crate::support::{Folder, json, longwire, repository, stderr, stdout};

#[test]
fn what_a_program_costs_is_reported_without_a_run() {
    let cost = longwire(&["forwarder", "cost", "syn-monitor"]);
    assert!(cost.status.success(), "{}", stderr(&cost));
    let text = stdout(&cost);
    for part in [
        "syn_monitor: ",
        "4 bytes of state, compiled",
        "longest path",
        "vrp: fits: ",
        "line-rate 1 Gbit/s: fits",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let heavy = longwire(&["forwarder", "cost", "nat44"]);
    assert!(
        stdout(&heavy).contains("refused: the budget per packet does not suffice: classifier"),
        "{}",
        stdout(&heavy)
    );
    let none = longwire(&["forwarder", "cost", "firewall"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(stderr(&none).contains("or one of ack-monitor, balancer, detector"), "{}", stderr(&none));
}

#[test]
fn what_a_program_costs_is_there_as_json() {
    let cost = json(&longwire(&["forwarder", "cost", "port-filter", "--path", "--json"]), 0);
    assert_eq!((&cost["program"], &cost["state"]), (&"port_filter".into(), &20.into()), "{cost:#}");
    let items = cost["rows"].as_array().unwrap();
    let item = |name: &str| items.iter().find(|item| item["name"] == name).unwrap();
    let sum: u64 = items.iter().map(|item| item["measured"].as_u64().unwrap()).sum();
    assert_eq!(cost["longest_path_ps"].as_u64(), Some(sum), "{cost:#}");
    let path = cost["path"].as_array().unwrap().len() as u64;
    assert_eq!(item("instruction")["times"].as_u64(), Some(path), "{cost:#}");
    let budgets = cost["budgets"].as_array().unwrap();
    assert_eq!(budgets[0]["name"], "vrp");
    // Classifier 56, minimal IP 32. The path with most cycles, 45, is not the slowest: that one reads the
    // ports.
    assert_eq!(budgets[0]["need"]["cycles"].as_u64(), Some(56 + 45 + 32), "{cost:#}");
    let heavy = json(&longwire(&["forwarder", "cost", "nat44", "--json"]), 0);
    assert_eq!(heavy["budgets"][0]["fits"], false);
    assert!(heavy["budgets"][0]["refused"].as_str().unwrap().contains("classifier"), "{heavy:#}");
    // A program that chooses links needs none for this. Time set aside for other levels is not available to
    // programs: nine tenths of 240 cycles and of 672 ns.
    let aside = json(&longwire(&["forwarder", "cost", "port-filter", "--set-aside", "10 %", "--json"]), 0);
    let budgets = aside["budgets"].as_array().unwrap();
    assert_eq!(budgets[0]["name"], "vrp, 10 % set aside");
    assert_eq!((&budgets[0]["budget"]["cycles"], &budgets[0]["need"]["cycles"]), (&216.into(), &133.into()));
    assert_eq!(budgets[1]["budget"]["picoseconds"], 604_800);
    let links = json(&longwire(&["forwarder", "cost", "balancer", "--json"]), 0);
    assert_eq!(links["budgets"][1]["fits"], true, "{links:#}");
    for (rate, why) in [
        ("0", "promises nothing"),
        ("unlimited", "promises nothing"),
        ("fast", "does not begin with a number"),
    ] {
        let none = longwire(&["forwarder", "cost", "nat44", "--line-rate", rate]);
        assert!(none.status.code() == Some(2) && stderr(&none).contains(why), "{rate}: {}", stderr(&none));
    }
}

#[test]
fn a_budget_that_does_not_suffice_is_a_mistake_of_the_scenario() {
    let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
    let folder = Folder::new("programs");
    let vrp = text.replace("line-rate = \"100 Mbit/s\"", "profile = \"vrp\"");
    let fits = longwire(&["check", &folder.write("fits.toml", &vrp)]);
    assert!(fits.status.success(), "{}{}", stdout(&fits), stderr(&fits));
    // One more, which reads and writes 136 bytes of state.
    let tight = vrp + "\n[[forwarder]]\nrouter = \"r1\"\nprogram = \"policer\"\n";
    let tight = folder.write("tight.toml", tight);
    let check = longwire(&["check", &tight]);
    let told = stdout(&check) + &stderr(&check);
    assert!(!check.status.success() && told.contains("bytes of state, 96 allowed"), "{told}");
}

#[test]
fn prices_are_measured_and_used() {
    let folder = Folder::new("prices");
    let prices = folder.text("prices");
    let report = json(&longwire(&["calibrate", "--quick", "--json", "--output", &prices]), 0);
    let rows = report["rows"].as_array().unwrap();
    assert!(
        rows.iter().any(|row| row["name"] == "state-line" && row["picoseconds"].as_u64() > Some(0)),
        "{rows:?}"
    );
    if longwire_lab::abilities().namespaces.available {
        for name in ["tunnel-receive", "tunnel-transmit"] {
            assert!(
                rows.iter().any(|row| row["name"] == name && row["least"].as_f64() > Some(0.0)),
                "{rows:?}"
            );
        }
    }
    assert!(report["file"] == prices.as_str());
    // A measured instruction is expensive enough on any machine to be distinguished from the assumption.
    let text = std::fs::read_to_string(&prices).unwrap();
    let line = text.lines().find(|line| line.starts_with("instruction = ")).unwrap();
    folder.write("heavy", text.replace(line, "instruction = 90000000"));
    let scenario = |prices: &str| {
        let text = std::fs::read_to_string(repository("scenarios/programs.toml")).unwrap();
        let line = "line-rate = \"100 Mbit/s\"";
        assert!(text.contains(line));
        folder.write("routers.toml", text.replace(line, &format!("{line}\nprices = \"{prices}\"")))
    };
    let told = |prices: &str| {
        let check = longwire(&["check", &scenario(prices)]);
        (check.status.code(), stdout(&check) + &stderr(&check))
    };
    let (_, assumed) = told("assumed");
    assert!(!assumed.contains("picoseconds"), "{assumed}");
    // The scenario names the prices of its routers; engine costs come from the file named here.
    let check = longwire(&["check", &scenario("prices"), "--prices", &prices]);
    let measured = stdout(&check) + &stderr(&check);
    assert!(!measured.contains("no list") && !measured.contains("assumed prices"), "{measured}");
    assert!(measured.contains("worker 0, load"), "{measured}");
    let (code, heavy) = told("heavy");
    assert!(code == Some(2) && heavy.contains("picoseconds, 6720000 allowed"), "{heavy}");
    let (code, none) = told("none");
    assert!(code == Some(2) && none.contains("none: ") && none.contains("longwire calibrate"), "{none}");
    let cost = longwire(&["forwarder", "cost", "syn-monitor", "--prices", &folder.text("heavy")]);
    assert!(stdout(&cost).contains("line-rate 1 Gbit/s: refused"), "{}{}", stdout(&cost), stderr(&cost));
}
