//! Help, examples, the book, completions, and informational commands.

mod support;

use clap::{Command, CommandFactory, Parser};
use longwire_cli::{Cli, usage};
use longwire_scenario::library::ShippedProfile;
use std::fs::File;
use std::io::Read;
use std::process::{Command as Process, Stdio};
use std::time::{Duration, Instant};
use support::lab::RunningLab;
use support::service::{ROUTED, Service, TWO_PORTS};
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// The words of a line as a shell splits it, up to a pipe, a redirection, a comment or a remark after some
/// spaces; none if it is no longwire command.
fn words(line: &str) -> Option<Vec<String>> {
    let line = line.trim();
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.split("   ").next()?.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '>' | '#' | '&') => break,
            (None, c) if c.is_whitespace() => words.push(String::new()),
            (_, c) => words.last_mut()?.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    (words.first().is_some_and(|word| word == "longwire")).then_some(words)
}

/// /dev/full is a full disk.
#[test]
fn help_that_can_not_be_printed_is_an_error() {
    for option in ["--help", "--version"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = Process::new(env!("CARGO_BIN_EXE_longwire")).arg(option).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option}");
        assert!(stderr(&output).contains("can't write to standard output: No space left"), "{option}");
    }
}

fn assert_parses(line: &str, whence: &str) {
    let words = words(line).unwrap_or_else(|| panic!("{whence}: {line}"));
    if let Err(error) = Cli::try_parse_from(&words) {
        let shown = matches!(
            error.kind(),
            clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion
        );
        assert!(shown, "{whence}: {line}: {error}");
    }
}

/// Every visible command below `command`, with its full name.
fn all(command: &Command, name: &str) -> Vec<(String, Command)> {
    let mut found = vec![(name.to_owned(), command.clone())];
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help" && !sub.is_hide_set()) {
        found.extend(all(sub, &format!("{name} {}", sub.get_name())));
    }
    found
}

#[test]
fn every_command_has_an_example_and_every_example_parses() {
    let commands = all(&Cli::command(), "longwire");
    let examples = |command: &Command| -> Vec<String> {
        let text = command.get_after_long_help().map(ToString::to_string).unwrap_or_default();
        text.lines().filter(|line| line.starts_with("  longwire ")).map(str::to_owned).collect()
    };
    let every: Vec<_> = commands.iter().flat_map(|(_, command)| examples(command)).collect();
    for (name, command) in &commands {
        let own = examples(command);
        // The parts of a command may be listed together in its help.
        let shown = own.len() + every.iter().filter(|line| line.trim().starts_with(name.as_str())).count();
        assert!(shown > 0, "{name} has no example");
        own.iter().for_each(|line| assert_parses(line, name));
        assert!(command.get_about().is_some(), "{name} says what it does");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name}: {} is explained", argument.get_id());
        }
    }
}

#[test]
fn profiles_that_help_names_exist() {
    let mut seen = 0;
    for (name, mut command) in all(&Cli::command(), "longwire") {
        let help = command.render_long_help().to_string();
        let words: Vec<&str> = help.split_whitespace().collect();
        for pair in words.windows(2).filter(|pair| pair[0] == "--profile" && !pair[1].starts_with('<')) {
            let profile = pair[1].trim_end_matches([',', ';', '.']);
            assert!(ShippedProfile::named(profile).is_some(), "{name}: there is no profile {profile}");
            seen += 1;
        }
    }
    assert!(seen > 5, "{seen}");
}

/// A command with these options, and `word` for every argument without a name.
fn line_of(name: &str, command: &Command, options: &[&str], word: &str) -> Vec<String> {
    let words = command.get_positionals().map(|_| word);
    name.split(' ').chain(options.iter().copied()).chain(words).map(str::to_owned).collect()
}

/// Parts of the standard library's texts about numbers and addresses.
const OF_LIBRARY: [&str; 4] = ["invalid digit", "for non-zero type", "target type", "address syntax"];

#[test]
fn errors_of_values_say_what_to_write() {
    let (mut parser, mut seen) = (usage::command(), 0);
    for (name, command) in all(&Cli::command(), "longwire") {
        let mut error = |options: &[&str], word: &str| {
            let parsed = parser.try_get_matches_from_mut(line_of(&name, &command, options, word));
            parsed.err().map(|error| usage::text(&error)).unwrap_or_default()
        };
        for option in command.get_arguments().filter(|arg| arg.get_action().takes_values()) {
            let Some(long) = option.get_long() else { continue };
            for value in ["foo", "0", "99999999999999999999", "-1"] {
                let text = error(&[&format!("--{long}={value}")], "0");
                let of_library = OF_LIBRARY.iter().any(|part| text.contains(part));
                assert!(!of_library, "{name} --{long}={value}: {text}");
                seen += usize::from(text.contains("write a whole number"));
            }
            // Without an equals sign a negative number is a value, too.
            let text = error(&[&format!("--{long}"), "-1"], "0");
            let is_none = text.contains("unexpected argument '-1'");
            assert!(!is_none || option.is_require_equals_set(), "{name} --{long} -1: {text}");
        }
        let text = error(&[], "foo");
        assert!(!OF_LIBRARY.iter().any(|part| text.contains(part)), "{name}: {text}");
    }
    assert!(seen > 20, "{seen}");
    let text = |args: &[&str]| stderr(&longwire(args)).lines().next().unwrap_or_default().to_owned();
    for (args, wanted) in [
        (
            &["sweep", "run", "x", "--jobs", "0"][..],
            "error: invalid value '0' for '--jobs <NUMBER>': write a whole number from 1",
        ),
        (
            &["control", "monitor", "r1", "--collector", "foo"],
            "error: invalid value 'foo' for '--collector <ADDRESS:PORT>': \"foo\" is not an address and \
             port, such as 192.0.2.7:9000",
        ),
        (
            &["exec", "--delay", "-5ms", "--", "true"],
            "error: invalid value '-5ms' for '--delay <TIME>': \"-5ms\" does not begin with a number; write \
             \"25 ms\"",
        ),
        (
            &["exec", "--delay", "--loss", "1%", "--", "true"],
            "error: invalid value '--loss' for '--delay <TIME>': the next word, --loss, is an option; write \
             a value before it",
        ),
    ] {
        assert_eq!(text(args), wanted);
    }
}

/// The commands in a page's blocks of code, without their output; each is one line.
fn commands_in(page: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut in_code = false;
    let mut lines = page.lines().map(str::trim);
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let mut command = line.trim_start_matches("$ ").to_owned();
        while let Some(beginning) = command.strip_suffix(" \\") {
            command = format!("{beginning} {}", lines.next().unwrap());
        }
        // A report begins with the program's name and version.
        let is_report =
            command.split(' ').nth(1).is_some_and(|word| word.starts_with(|c: char| c.is_ascii_digit()));
        if in_code && command.starts_with("longwire ") && !is_report {
            found.push(command);
        }
    }
    found
}

#[test]
fn every_command_in_the_book_parses() {
    let book = std::fs::read_dir(repository("docs/book")).unwrap().map(|page| page.unwrap().path());
    let mut seen = 0;
    for path in
        book.chain([repository("README.md")]).filter(|path| path.extension().is_some_and(|e| e == "md"))
    {
        let text = std::fs::read_to_string(&path).unwrap();
        for command in commands_in(&text) {
            assert_parses(&command, &path.display().to_string());
            seen += 1;
        }
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn help_reaches_every_command() {
    for (name, _) in all(&Cli::command(), "longwire") {
        let args: Vec<_> = name.split(' ').skip(1).chain(["--help"]).collect();
        let output = longwire(&args);
        assert_eq!(output.status.code(), Some(0), "{name}");
        assert!(stdout(&output).contains("Usage: longwire"), "{name}");
    }
    assert_eq!(longwire(&["nonsense"]).status.code(), Some(2));
    assert_eq!(longwire(&[]).status.code(), Some(2));
}

#[test]
fn every_list_has_the_one_envelope() {
    let folder = Folder::new("envelope");
    let (key, other) = (folder.text("nesp.key"), folder.text("tunnel.key"));
    for (command, args) in [
        ("blocks", &["queue"][..]),
        ("profiles", &[]),
        ("profiles show", &["lte"]),
        ("import", &["netem", "delay 100ms loss 1% limit 10"]),
        ("forwarder cost", &["port-filter"]),
        ("check", &[&*repository("scenarios/two-hosts.toml").display().to_string()]),
        ("nesp key", &[&*key]),
        ("tunnel key", &[&*other]),
    ] {
        let words: Vec<&str> = command.split(' ').chain(args.iter().copied()).chain(["--json"]).collect();
        let report = json(&longwire(&words), 0);
        assert_eq!((&report["command"], &report["pass"]), (&command.into(), &true.into()), "{report:#}");
        assert!(report["version"].is_string() && report["rows"].is_array(), "{report:#}");
    }
    let lte = json(&longwire(&["profiles", "--json"]), 0);
    assert!(row(&lte, "lte")["forward"]["rate"].is_string());
    let show = json(&longwire(&["profiles", "--json", "show", "lte"]), 0);
    assert!(row(&show, "lte")["text"].as_str().unwrap().contains("[forward"), "{show:#}");
    let imported = json(&longwire(&["import", "netem", "delay 1ms slot 1ms", "--json"]), 0);
    assert!(imported["scenario"].as_str().unwrap().contains("1 ms"), "{imported:#}");
}

#[test]
fn errors_are_json_too() {
    let folder = Folder::new("errors");
    let scenario = folder.write("wrong.toml", "[[link]]\nratee = 1\n");
    let told = |args: &[&str]| {
        let output = longwire(args);
        assert!(stderr(&output).contains("error:"), "{}", stderr(&output));
        json(&output, 2)
    };
    let error = told(&["check", &scenario, "--json"]);
    assert_eq!(
        (&error["file"], &error["line"], &error["column"]),
        (&(&*scenario).into(), &2.into(), &1.into())
    );
    assert_eq!(error["suggestion"], "rate", "{error:#}");
    assert_eq!(told(&["blocks", "quee", "--json"])["suggestion"], "queue");
    assert_eq!(told(&["profiles", "show", "ltee", "--json"])["suggestion"], "lte");
    let unknown = told(&["check", &scenario, "--json", "--pries", "x"]);
    assert_eq!(
        (&unknown["field"], &unknown["suggestion"]),
        (&"--pries".into(), &"--prices".into()),
        "{unknown:#}"
    );
    assert!(told(&["ctl", "get", "up", "--instance", "nobody-has-this", "--json"])["error"].is_string());
    assert!(told(&["check", "/nowhere.toml", "--json"])["file"] == "/nowhere.toml");
    let number = told(&["sweep", "run", &scenario, "--jobs", "0", "--json"]);
    assert!(number["error"].as_str().unwrap().ends_with("write a whole number from 1"), "{number:#}");
    // Those of exec are where its report would be: standard output is the command's.
    let file = folder.text("exec.json");
    for args in [&["--rate", "foo"][..], &["--dealy", "5ms"]] {
        let to = format!("--json={file}");
        let output = longwire(&[&["exec"], args, &[&to, "--", "true"]].concat());
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""));
        let told: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        assert!(told["field"].as_str().unwrap().starts_with(args[0]), "{told:#}");
        std::fs::remove_file(&file).unwrap();
    }
    // Without the option only results are on standard output.
    assert_eq!(stdout(&longwire(&["check", &scenario])), "");
}

#[test]
fn errors_of_links_in_the_foreground_are_printed_once_as_json() {
    let told = |args: &[&str]| {
        let output = longwire(args);
        let (said, on_error) = (stdout(&output), stderr(&output));
        assert_eq!(output.status.code(), Some(2), "{args:?}: {said}{on_error}");
        let (object, other) = if args[0] == "exec" { (on_error, said) } else { (said, on_error) };
        assert_eq!(other, "", "{args:?}");
        let object: serde_json::Value =
            serde_json::from_str(&object).unwrap_or_else(|error| panic!("{args:?}: {error}: {object}"));
        object["error"].as_str().unwrap().to_owned()
    };
    assert!(told(&["exec", "--rate", "foo", "--json", "--", "true"]).contains("'--rate <RATE>'"));
    for to in ["--json", "--json=/dev/stderr"] {
        assert!(told(&["exec", to, "--user", "no-such-user", "--", "true"]).contains("no-such-user"));
    }
    assert!(told(&["attach", "--json", "--rate", "foo"]).contains("'--rate <RATE>'"));
    // Without root, that is the error.
    told(&["attach", "--json", "--netns", "no-such-namespace"]);
    let proxy = ["proxy", "--json", "--listen", "0", "--to"];
    assert!(told(&[&proxy[..], &["127.0.0.1:0"]].concat()).contains("port 0"));
    assert!(told(&[&proxy[..], &["127.0.0.1:1", "--log", "x"]].concat()).contains("name the log"));
}

#[test]
fn what_describes_is_complete() {
    let schema = json(&longwire(&["schema"]), 0);
    assert_eq!(schema["title"], "Longwire scenario");
    let blocks = json(&longwire(&["blocks", "--json"]), 0);
    let blocks = blocks["rows"].as_array().unwrap();
    assert_eq!(blocks.len(), longwire_link::registry().len());
    let text = stdout(&longwire(&["blocks"]));
    assert!(blocks.iter().all(|block| text.contains(block["summary"].as_str().unwrap())));
    assert!(stderr(&longwire(&["blocks", "colour"])).contains("there is no key \"colour\""));
    for shell in ["bash", "zsh", "fish"] {
        assert!(stdout(&longwire(&["completions", shell])).contains("LONGWIRE_COMPLETE"), "{shell}");
    }
    let folder = Folder::new("man");
    let dir = folder.text("pages");
    assert_eq!(longwire(&["man", &dir]).status.code(), Some(0));
    for page in ["longwire.1", "longwire-run.1", "longwire-ctl-set.1"] {
        assert!(folder.path("pages").join(page).is_file(), "{page}");
    }
}

/// What the last word of a line is completed to, asked as fish does: a candidate a line, before its help.
fn offered(folder: &Folder, line: &str) -> Vec<String> {
    let output = Process::new(env!("CARGO_BIN_EXE_longwire"))
        .envs([("LONGWIRE_COMPLETE", "fish".to_owned()), ("LONGWIRE_RUN_DIR", folder.text("run"))])
        .arg("--")
        .args(line.split(' '))
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}: {}", stderr(&output));
    let text = stdout(&output);
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

/// Asks until these names are offered: an instance of a busy machine may answer later than a person waits.
fn assert_offered(folder: &Folder, line: &str, names: &[&str]) {
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let found = offered(folder, line);
        if names.iter().all(|name| found.iter().any(|other| other == name)) {
            return;
        }
        assert!(Instant::now() < until, "{line}: {names:?}, not {found:?}");
    }
}

#[test]
fn what_runs_is_offered_to_shells() {
    let folder = Folder::new("completions");
    let routed = folder.write("routed.toml", ROUTED);
    let other = folder.write("other.toml", TWO_PORTS.replace("up", "duplex"));
    let service = Service::start(&folder, &[&routed, &other]);
    for (line, names) in [
        ("longwire ctl set u", &["up"][..]),
        ("longwire ctl get dup", &["duplex", "duplex.forward", "duplex.backward"]),
        ("longwire ctl get vi", &["video"]),
        ("longwire ctl stats ", &["other", "routed"]),
        ("longwire ctl get up --instance ro", &["routed"]),
        ("longwire ctl route list ", &["r"]),
        ("longwire ctl remove ", &["up", "down", "duplex", "a", "b", "r", "video"]),
    ] {
        assert_offered(&folder, line, names);
    }
    // Directions are no links of their own, and media stay.
    let removable = offered(&folder, "longwire ctl remove ");
    assert!(!removable.iter().any(|name| name.contains('.')), "{removable:?}");
    // What is offered is what there is, and begins with the word.
    assert_eq!(offered(&folder, "longwire top ro"), ["routed"]);
    // All commands take the instance by the same option, which errors name.
    assert!(service.ctl(&["save", "--instance", "routed"]).status.success());
    assert!(stderr(&service.ctl(&["save"])).contains(": choose one with --instance"));
    let no_instance = stderr(&service.ctl(&["stats", "up.forward"]));
    assert!(no_instance.contains("is running; there are other-"), "{no_instance}");
    assert!(no_instance.ends_with("; for a link or another object: longwire ctl get up.forward\n"));
    assert!(service.ctl(&["remove", "r", "--instance", "routed"]).status.success());
    assert!(!offered(&folder, "longwire ctl remove ").contains(&"r".into()));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn labs_and_their_hosts_are_offered_to_shells() {
    let hosts = "[[host]]\nname = \"east\"\naddress = \"10.77.0.1/24\"\n\
        [[host]]\nname = \"west\"\naddress = \"10.77.0.2/24\"\n";
    let Some(lab) = RunningLab::of("offered", hosts) else { return };
    let folder = Folder::new("completions");
    assert_offered(&folder, "longwire lab exec t", &[&lab.name]);
    assert_offered(&folder, "longwire lab down t", &[&lab.name]);
    assert_offered(&folder, &format!("longwire lab exec {} ", lab.name), &["east", "west"]);
    assert_offered(&folder, &format!("longwire lab exec {} w", lab.name), &["west"]);
}

#[test]
fn a_scenario_is_checked() {
    let folder = Folder::new("check");
    let fits = repository("scenarios/two-hosts.toml");
    let report = json(&longwire(&["check", fits.to_str().unwrap(), "--json"]), 0);
    assert_eq!((&report["pricing"]["links"], &report["hosts"]), (&2.into(), &2.into()));
    assert_eq!(report["warnings"], serde_json::json!([]));
    let alone = folder.write("alone.toml", "[[host]]\nname = \"a\"\naddress = \"10.0.0.1/24\"\n");
    let report = json(&longwire(&["check", &alone, "--json"]), 0);
    let warned = &report["warnings"][0];
    assert_eq!((&warned["field"], &warned["line"]), (&"port \"a\"".into(), &2.into()), "{report:#}");
    let capture = "[[port]]\nname = \"p\"\ndriver = \"pcap\"\ninput = \"nosuch.pcap\"\n";
    let lacking = folder.write("lacking.toml", capture);
    let report = json(&longwire(&["check", &lacking, "--json"]), 0);
    let mut warnings = report["warnings"].as_array().unwrap().iter();
    let named = warnings.find(|warning| warning["error"].to_string().contains("nosuch.pcap"));
    assert_eq!(named.unwrap()["field"], "port \"p\"", "{report:#}");
    let said = stderr(&longwire(&["check", &lacking]));
    assert!(said.contains("note: port \"p\": ") && said.contains("nosuch.pcap: No such file"), "{said}");
    let text = std::fs::read_to_string(&fits).unwrap();
    let tight =
        folder.write("tight.toml", format!("{text}\n[engine]\npool = \"1 MiB\"\n").replace("20 ms", "10 s"));
    let report = json(&longwire(&["check", &tight, "--json"]), 1);
    assert!(report["failures"][0].as_str().unwrap().contains("delay lines"), "{}", report["failures"]);
    let wrong = folder.write("wrong.toml", text.replace("delay =", "dealy ="));
    let output = longwire(&["check", &wrong]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.starts_with("error: ") && said.contains("did you mean \"delay\"?") && said.contains("^^^^^"),
        "{said}"
    );
}

#[test]
fn check_predicts_the_load_by_prices() {
    let folder = Folder::new("check-prices");
    let scenario = repository("scenarios/two-hosts.toml");
    let check = |more: &[&str]| longwire(&[&["check", scenario.to_str().unwrap()], more].concat());
    let load = |frame: &str| {
        let report = json(&check(&["--prices", "assumed", "--frame-bytes", frame, "--json"]), 0);
        assert_eq!((&report["prices"], &report["capacity"]["measured"]), (&"assumed".into(), &false.into()));
        report["capacity"]["workers"][0]["load_ppm"].as_u64().unwrap()
    };
    let (short, long) = (load("60"), load("1514"));
    assert!(short > 10 * long && long > 0, "{short} {long}");
    let output = check(&["--prices", "assumed"]);
    assert!(stdout(&output).contains("worker 0, load") && stdout(&output).contains("saturated at"));
    assert!(stderr(&output).contains("assumed prices; \"longwire calibrate\""), "{}", stderr(&output));
    // As written by versions before the format had a number.
    let old = folder.write("old", "# Prices in picoseconds.\ninstruction = 391\n");
    let output = check(&["--prices", &old]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("older version") && stderr(&output).contains("\"longwire calibrate\""));
    let output = Process::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["forwarder", "cost", "nat44", "--prices", "calibrated"])
        .env("XDG_CONFIG_HOME", folder.path("none"))
        .output()
        .unwrap();
    let wanted = "error: --prices: this machine is not calibrated: run \"longwire calibrate\"\n";
    assert_eq!(stderr(&output), wanted);
    let output = check(&["--frame-bytes", "59"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

/// If standard error is not a terminal, each row and each bench prints a line when it begins.
#[test]
fn long_operations_report_progress() {
    let run = longwire(&["validate", "linkem", "--virtual", "--quick", "--only", "table 5.2", "--json"]);
    let report = json(&run, 0);
    let rows = report["rows"].as_array().unwrap().iter();
    let names = rows.filter_map(|row| row["name"].as_str().filter(|name| name.starts_with("table 5.2")));
    let names: Vec<_> = names.collect();
    let all = names.len();
    let wanted: Vec<_> = (1..).zip(&names).map(|(nth, name)| format!("{name} ({nth} of {all})")).collect();
    let said = stderr(&run);
    let said: Vec<_> = said.lines().filter(|line| !line.starts_with("note:")).collect();
    assert!(all >= 6 && said == wanted, "{said:#?}\n{wanted:#?}");

    // Rows that do not depend on speed: accounting of queues, programs' instructions, the budget. All others
    // say that they were not run.
    let rows = ["budget", "queues:", "table 1", "table 5"].map(|text| ["--only", text]);
    let princeton =
        [&["validate", "princeton", "--virtual", "--quick", "--json"], rows.as_flattened()].concat();
    let report = json(&longwire(&princeton), 0);
    let rows = report["rows"].as_array().unwrap();
    let of = |text: &str| -> Vec<_> {
        let name = |row: &&serde_json::Value| row["name"].as_str().is_some_and(|name| name.starts_with(text));
        rows.iter().filter(name).map(|row| (&row["measured"], &row["pass"])).collect()
    };
    let budget = of("budget: splicer");
    // Cycles, transfers and bytes of state of the built-in forwarders.
    assert_eq!(budget, [(&203.into(), &true.into()), (&24.into(), &true.into()), (&93.into(), &true.into())]);
    assert!(of("queues: ").iter().all(|(_, pass)| **pass == true) && of("queues: ").len() == 5, "{rows:#?}");
    assert!(of("table 1: ").iter().all(|(measured, _)| **measured == "not run"));
    let verified =
        rows.iter().filter(|row| row["bound"].as_u64() >= row["measured"].as_u64() && row["pass"] == true);
    assert_eq!(verified.filter(|row| row["bound"].is_u64()).count(), 8, "{rows:#?}");

    let said = stderr(&longwire(&["bench", "alloc", "exact", "--quick", "--json"]));
    for line in ["exact (bench 1 of 2)", "alloc (bench 2 of 2)"] {
        assert!(said.lines().any(|said| said == line), "{said}");
    }
}

/// Minutes of measuring precede the page: it is tried before, and without it the rows are printed.
#[test]
fn a_page_that_can_not_be_written_loses_no_rows() {
    for (file, has_run) in [("/nowhere/page.html", false), ("/dev/full", true)] {
        let rows = ["--virtual", "--quick", "--only", "table 5.2"];
        let output = longwire(&[&["validate", "linkem", "--html", file], &rows[..]].concat());
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("can't write the report to"), "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("(1 of "), has_run, "{}", stderr(&output));
        assert_eq!(stdout(&output).contains("table 5.2"), has_run, "{}", stdout(&output));
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = Process::new(env!("CARGO_BIN_EXE_longwire"))
        .args(["schema"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More is written than a pipe holds, without a reader.
    drop(child.stdout.take());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.as_str()), (Some(0), ""));
}

#[test]
fn output_that_can_not_be_written_is_named() {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = Process::new(env!("CARGO_BIN_EXE_longwire")).arg("profiles").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("can't write to standard output: No space left"), "{}", stderr(&output));
}

#[test]
fn a_scenario_is_not_written_over_what_it_is_made_from() {
    let folder = Folder::new("imported-over");
    let script = "tc qdisc add dev eth0 root netem delay 20ms\n";
    let commands = folder.write("z.sh", script);
    let trace = folder.write("up.trace", "1\n2\n3\n");
    let play = format!("mm-link {trace} {trace}");
    for (format, what, target) in
        [("netem", &commands, &commands), ("mahimahi", &play, &trace), ("mahimahi", &trace, &trace)]
    {
        let output = longwire(&["import", format, what, "-o", target]);
        assert_eq!(output.status.code(), Some(2), "{what}");
        assert!(stderr(&output).contains("would be overwritten"), "{what}: {}", stderr(&output));
    }
    assert_eq!(std::fs::read_to_string(&commands).unwrap(), script);
    assert_eq!(std::fs::read_to_string(&trace).unwrap(), "1\n2\n3\n");
    for _ in 0..2 {
        let output = longwire(&["import", "netem", &commands, "-o", &folder.text("z.toml")]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
}

#[test]
fn prices_that_can_not_be_written_are_not_measured() {
    let folder = Folder::new("prices-unwritten");
    for file in ["/proc/x/p", &*folder.text("none/p"), &*folder.text("")] {
        let output = longwire(&["calibrate", "--quick", "-o", file]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(2), ""), "{file}: {said}");
        assert!(said.contains(&format!("can't write the prices to {file}: ")), "{said}");
        // No step of the measurements was begun.
        assert!(said.lines().all(|line| line.starts_with("note: ") || line.starts_with("error: ")), "{said}");
    }
    assert!(!folder.path("none").exists());
}

#[test]
fn nothing_runs_in_an_empty_directory() {
    let folder = Folder::new("ctl");
    let run = |args: &[&str]| {
        let mut command = Process::new(env!("CARGO_BIN_EXE_longwire"));
        command.args(args).env("LONGWIRE_RUN_DIR", folder.path("none")).output().unwrap()
    };
    assert_eq!(json(&run(&["ctl", "list", "--json"]), 0)["rows"].as_array().map(Vec::len), Some(0));
    let output = run(&["ctl", "stats"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no instance of this user is running"), "{}", stderr(&output));
    assert!(stderr(&run(&["ctl", "set", "up", "rate"])).contains("KEY=VALUE"));
}
