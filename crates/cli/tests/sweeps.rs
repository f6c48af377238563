//! `longwire sweep`, and `longwire run` with `--seed` and `--set`.

mod support;

use longwire_lab::abilities;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::started::Started;
use support::{Folder, json, longwire, repository, row, stderr, stdout};

/// Time limit for events that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// Two hosts with more traffic than their link carries.
const SCENARIO: &str = r#"
[[host]]
name = "a"
address = "10.0.0.1/24"

[[host]]
name = "b"
address = "10.0.0.2/24"

[[link]]
name = "up"
between = ["a", "b"]
rate = "2 Mbit/s"
delay = "10 ms"
queue = "20 packets"

[[source]]
name = "load"
from = "a"
to = "b"
rate = "3 Mbit/s"
poisson = true
for = "1 s"
"#;

/// Three rates, two losses and two seeds.
const SWEEP: &str = r#"
scenario = "net.toml"
seeds = 2

[axes]
up.rate = ["1mbit", "2mbit", "4mbit"]
up.forward.loss = ["0 %", "10 %"]
"#;

/// A folder with the scenario and a sweep, and the sweep's path.
fn folder(name: &str, sweep: &str) -> (Folder, String) {
    let folder = Folder::new(name);
    folder.write("net.toml", SCENARIO);
    let file = folder.write("sweep.toml", sweep);
    (folder, file)
}

/// Standard output of a command that succeeded.
fn well(args: &[&str]) -> String {
    let output = longwire(args);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    stdout(&output)
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

#[test]
fn a_plan_lists_the_tasks() {
    let (_folder, file) = folder("sweep-plan", SWEEP);
    let text = well(&["sweep", "plan", &file]);
    let words = |line: &'_ str| -> Vec<String> {
        let words = line.split("  ").map(str::trim).filter(|word| !word.is_empty());
        words.map(String::from).collect()
    };
    let lines: Vec<_> = text.lines().map(words).collect();
    assert_eq!(lines.len(), 13, "{text}");
    assert_eq!(lines[0], ["task", "up.rate", "up.forward.loss", "seed"]);
    assert_eq!(lines[1], ["0", "1mbit", "0 %", "1"]);
    assert_eq!(lines[4], ["3", "1mbit", "10 %", "2"]);
    assert_eq!(lines[12], ["11", "4mbit", "10 %", "2"]);
    assert_eq!(well(&["sweep", "plan", &file, "--count"]), "12\n");
    let report = json(&longwire(&["sweep", "plan", &file, "--json"]), 0);
    assert_eq!((&report["tasks"], &report["rows"].as_array().unwrap().len()), (&json!(12), &12));
    assert_eq!(report["rows"][3]["settings"], json!({ "up.rate": "1mbit", "up.forward.loss": "10 %" }));
}

/// Each value is tried once: with the first ones of other axes, and the first seed.
#[test]
fn a_plan_names_tasks_that_can_not_begin() {
    let axes = "up.rate = [\"1mbit\", \"fast\"]\nup.forward.loss = [\"0 %\", \"10 %\", \"lots\"]\n\
        up.backward.delay = { from = \"1 ms\", to = \"300 ms\", step = \"1 ms\" }\n";
    let sweep = format!("scenario = \"net.toml\"\nseeds = 2\n[axes]\n{axes}");
    let (_folder, file) = folder("sweep-plan-faults", &sweep);
    let output = longwire(&["sweep", "plan", &file]);
    assert_eq!((output.status.code(), stdout(&output).lines().count()), (Some(1), 3601));
    let said = stderr(&output);
    let said: Vec<&str> = said.lines().collect();
    let [loss, rate] = said[..] else { panic!("{said:#?}") };
    assert!(loss.starts_with("note: task 1200 can't begin: up.forward.loss: "), "{loss}");
    assert!(rate.starts_with("note: task 1800 can't begin: up.rate: \"fast\" does not begin with"), "{rate}");
    let report = json(&longwire(&["sweep", "plan", &file, "--json"]), 1);
    let rows = report["rows"].as_array().unwrap().iter();
    let failed = rows.filter(|row| row["pass"] == false).filter_map(|row| row["task"].as_u64());
    assert_eq!(failed.collect::<Vec<_>>(), [1200, 1800]);
    assert_eq!(well(&["sweep", "plan", &file, "--count"]), "3600\n");
}

/// More than are printed at once.
#[test]
fn a_long_plan_has_its_columns_below_each_other() {
    let sweep = "scenario = \"net.toml\"\nseeds = 20001\n[axes]\nup.rate = [\"1mbit\"]\n";
    let (_folder, file) = folder("sweep-long-plan", sweep);
    let text = well(&["sweep", "plan", &file]);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines.len(), lines[0]), (20_002, "task   up.rate  seed"));
    let wrong =
        lines[1..].iter().zip(0..).find(|(line, task)| **line != format!("{task:<5}    1mbit  {}", task + 1));
    assert_eq!(wrong, None);
}

#[test]
fn the_same_tasks_give_the_same_bytes() {
    let (folder, file) = folder("sweep-bytes", SWEEP);
    let one = well(&["sweep", "run", &file, "--jobs", "1"]);
    assert_eq!(well(&["sweep", "run", &file, "--jobs", "4"]), one);
    // Tasks apart, as jobs of a cluster are, in any order.
    let parts = ["8-11", "0-3,4", "5,6,7"].map(|tasks| well(&["sweep", "run", &file, "--task", tasks]));
    assert_eq!(format!("{}{}{}", parts[1], parts[2], parts[0]), one);
    let all = rows(&one);
    assert!(all.iter().map(|row| row["task"].as_u64().unwrap()).eq(0..12));
    // Each row is what a single run reports.
    let task = ["--set", "up.rate=2mbit", "--set", "up.forward.loss=10%", "--seed", "2"];
    let net = folder.text("net.toml");
    let report = json(&longwire(&[&["run", &net, "--virtual", "--json"], &task[..]].concat()), 0);
    let (link, load) = (row(&report, "link up.forward"), row(&report, "source load"));
    let of_sweep = &all[7];
    assert_eq!((&of_sweep["up.rate"], &of_sweep["seed"]), (&json!("2mbit"), &json!(2)));
    assert_eq!(of_sweep["link.up.forward.out_bytes"], link["out_bytes"]);
    assert_eq!(of_sweep["link.up.forward.dropped.loss"], link["dropped"]["loss"]);
    assert_eq!(of_sweep["source.load.delay_ns_p95"], load["delay_ns_p95"]);
    assert_eq!(of_sweep["source.load.received"], load["measured"]);
    // What is set makes a difference.
    let received: BTreeSet<_> = all.iter().map(|row| row["source.load.received"].as_u64()).collect();
    assert!(received.len() >= 8, "{received:?}");
}

/// Any machine repeats the bytes of `golden_rows/rows.jsonl`, but for the sweep's hash, in which the version
/// is. `LONGWIRE_GOLDEN_RECORD=1` writes the file anew.
#[test]
fn the_rows_are_those_that_were_recorded() {
    let [sweep, file] =
        ["sweep.toml", "rows.jsonl"].map(|name| repository(&format!("crates/cli/tests/golden_rows/{name}")));
    let text = well(&["sweep", "run", sweep.to_str().unwrap()]);
    let hash = rows(&text)[0]["sweep"].as_str().unwrap().to_owned();
    let text = text.replace(&hash, "");
    if std::env::var_os("LONGWIRE_GOLDEN_RECORD").is_some() {
        return std::fs::write(file, text).unwrap();
    }
    let recorded = std::fs::read_to_string(file).unwrap();
    if let Some((now, then)) = text.lines().zip(recorded.lines()).find(|(now, then)| now != then) {
        let [now, then] = [now, then].map(|line| serde_json::from_str::<Value>(line).unwrap());
        let columns =
            now.as_object().unwrap().iter().filter(|(column, value)| then[column.as_str()] != **value);
        let differing: Vec<_> = columns.map(|(column, value)| (column, value, &then[column])).collect();
        panic!("task {}: column, now, recorded: {differing:#?}", now["task"]);
    }
    assert_eq!(text.lines().count(), recorded.lines().count());
}

#[test]
fn a_run_with_settings_is_that_of_the_scenario_with_them() {
    let folder = Folder::new("run-set");
    let plain = folder.write("plain.toml", SCENARIO);
    let text = SCENARIO.replace("rate = \"2 Mbit/s\"", "rate = \"1 Mbit/s\"\nmtu = 1400");
    let written = folder.write("written.toml", format!("seed = 9\n{text}"));
    let set = ["--seed", "9", "--set", "up.rate=1mbit", "--set", "up.mtu=1400"];
    let run = |args: &[&str]| json(&longwire(&[&["run", "--virtual", "--json"], args].concat()), 0);
    let (mut one, mut two) = (run(&[&[plain.as_str()], &set[..]].concat()), run(&[&written]));
    for report in [&mut one, &mut two] {
        report["scenario"] = Value::Null;
        report["pool"] = Value::Null;
    }
    assert_eq!(one, two);
    let output = longwire(&["run", &plain, "--virtual", "--set", "upp.rate=1mbit"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("upp.rate: there is no link, source, medium or router \"upp\""));
    assert!(stderr(&output).contains("did you mean \"up\"?"), "{}", stderr(&output));
    let output = longwire(&["run", &plain, "--virtual", "--json", "--set", "up.dealy=1ms"]);
    let told = json(&output, 2);
    let error = "up.dealy: a link has no \"dealy\"; did you mean \"delay\"?";
    assert_eq!((&told["error"], &told["suggestion"]), (&json!(error), &json!("delay")));
    let output = longwire(&["run", &plain, "--virtual", "--set", "rate=1mbit"]);
    assert!(stderr(&output).contains("write OBJECT.SETTING=VALUE"), "{}", stderr(&output));
}

#[test]
fn an_interrupted_sweep_goes_on() {
    let (folder, file) = folder("sweep-resume", SWEEP);
    let whole = folder.text("whole.jsonl");
    let told = well(&["sweep", "run", &file, "--output", &whole]);
    assert!(told.contains("12 tasks run, 0 failed"), "{told}");
    let all = std::fs::read_to_string(&whole).unwrap();
    // Interrupted within a row, behind a row, within the first, and before it.
    let ends: Vec<usize> = all.match_indices('\n').map(|(at, _)| at + 1).collect();
    for kept in [ends[4] + 17, ends[4], 5, 0] {
        let rest = folder.write("rest.jsonl", &all[..kept]);
        let output = longwire(&["sweep", "run", &file, "--output", &rest, "--json"]);
        let report = json(&output, 0);
        let done = ends.iter().filter(|end| **end <= kept).count();
        assert_eq!((&report["done_before"], &report["ran"]), (&json!(done), &json!(12 - done)));
        let torn = !ends.contains(&kept) && kept > 0;
        assert_eq!(stderr(&output).contains("the last row was incomplete"), torn);
        assert_eq!(std::fs::read_to_string(&rest).unwrap(), all);
    }
    let told = well(&["sweep", "run", &file, "--output", &whole]);
    assert!(told.contains("0 tasks run, 0 failed, 12 had been run before"), "{told}");
    // Rows of another sweep, and lines that are none, are left alone.
    let other = folder.write("other.toml", SWEEP.replace("4mbit", "5mbit"));
    let output = longwire(&["sweep", "run", &other, "--output", &whole]);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(told.contains("whole.jsonl:1: this row belongs to another sweep"), "{told}");
    for (content, wanted) in [
        ("hello\n", "text.txt:1: this is no row of a sweep"),
        ("hello", "text.txt: its last line is no row of this sweep"),
        // A row of another sweep, whose end an editor has taken.
        ("{\"task\": 0, \"sweep\": \"f00\", \"seed\": 1}", "text.txt: its last line is no row of this sweep"),
    ] {
        let text = folder.write("text.txt", content);
        let output = longwire(&["sweep", "run", &file, "--output", &text]);
        assert!(stderr(&output).contains(wanted), "{}", stderr(&output));
        assert_eq!(std::fs::read_to_string(&text).unwrap(), content);
    }
    assert_eq!(std::fs::read_to_string(&whole).unwrap(), all);
}

#[test]
fn a_task_that_fails_has_a_row_and_the_others_go_on() {
    let sweep = "scenario = \"net.toml\"\n[axes]\nup.rate = [\"1mbit\", \"fast\", \"2mbit\"]\n";
    let (folder, file) = folder("sweep-fails", sweep);
    let rows_file = folder.text("rows.jsonl");
    let output = longwire(&["sweep", "run", &file, "--output", &rows_file]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let told = stdout(&output);
    assert!(told.contains("3 tasks run, 1 failed") && told.contains("task 1: up.rate: "), "{told}");
    let all = rows(&std::fs::read_to_string(&rows_file).unwrap());
    let status: Vec<_> = all.iter().map(|row| row["status"].as_str().unwrap()).collect();
    assert_eq!(status, ["ok", "failed", "ok"]);
    let error = all[1]["error"].as_str().unwrap();
    assert!(error.starts_with("up.rate: \"fast\" does not begin with a number"), "{error}");
    assert!(all[1].get("taken").is_none() && all[0]["error"].is_null());
    let output = longwire(&["sweep", "run", &file, "--output", &folder.text("again.jsonl"), "--json"]);
    let report = json(&output, 1);
    assert_eq!((&report["failed"], &report["rows"][0]["task"]), (&json!(1), &json!(1)));
    // Its row stays, and with it the failure.
    let continued =
        |options: &[&str]| longwire(&[&["sweep", "run", &file, "--output", &rows_file], options].concat());
    let told = stdout(&continued(&[]));
    assert!(told.contains("0 tasks run, 0 failed, 3 had been run before, 1 of these failed"), "{told}");
    let report = json(&continued(&["--json"]), 1);
    assert_eq!((&report["failed_before"], &report["pass"]), (&json!(1), &json!(false)));
    json(&continued(&["--json", "--task", "0,2"]), 0);
}

/// Rows of other contents of a file that the scenario, or one of its profiles, names are not continued.
#[test]
fn a_changed_trace_is_another_sweep() {
    let (folder, file) = folder("sweep-trace", "scenario = \"net.toml\"\n");
    let by_link = SCENARIO.replace("\"2 Mbit/s\"", "{ kind = \"trace\", file = \"rates\" }");
    let by_profile = SCENARIO.replace("rate = \"2 Mbit/s\"", "profile = \"own.toml\"");
    folder.write(
        "own.toml",
        "summary = \"own\"\nsource = \"none\"\nrate = { kind = \"trace\", file = 'rates' }\n",
    );
    for (number, scenario) in [by_link, by_profile].iter().enumerate() {
        folder.write("net.toml", scenario);
        folder.write("rates", "0 s 1 Mbit/s\n");
        let rows = folder.text(&format!("rows-{number}.jsonl"));
        well(&["sweep", "run", &file, "--output", &rows]);
        folder.write("rates", "0 s 2 Mbit/s\n");
        let output = longwire(&["sweep", "run", &file, "--output", &rows]);
        assert!(stderr(&output).contains("this row belongs to another sweep"), "{}", stderr(&output));
        folder.write("rates", "0 s 1 Mbit/s\n");
        assert!(well(&["sweep", "run", &file, "--output", &rows]).contains("1 had been run before"));
    }
}

#[test]
fn columns_that_no_task_has_are_named() {
    let sweep = "scenario = \"net.toml\"\ncolumns = [\"dropped\", \"dropt*\"]\n";
    let (_folder, file) = folder("sweep-columns", sweep);
    let output = longwire(&["sweep", "run", &file]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stderr(&output), "note: none of these tasks has a column \"dropt*\"\n");
    assert!(rows(&stdout(&output))[0]["dropped"].is_u64());
}

/// A sweep of many seconds; the line comes after two.
#[test]
fn a_long_sweep_says_how_far_it_is() {
    let tasks = "scenario = \"net.toml\"\nseeds = 2000\n";
    let (_folder, file) = folder("sweep-progress", tasks);
    let mut command = Command::new(env!("CARGO_BIN_EXE_longwire"));
    command.args(["sweep", "run", &file, "--jobs", "1"]);
    let (running, line) = Started::ready(&mut command, " of 2000 tasks");
    let count: Option<u32> =
        line.split(" of ").next().and_then(|count| count.rsplit(' ').next()?.parse().ok());
    assert!(count.is_some_and(|count| count > 0 && count.is_multiple_of(200)), "{line}");
    assert!(line.ends_with(" tasks, 0 failed"), "{line}");
    drop(running);
}

#[test]
fn mistakes_name_their_place() {
    let (folder, _) = folder("sweep-mistakes", SWEEP);
    let wrong = |text: &str, wanted: &str| {
        let file = folder.write("wrong.toml", text);
        let output = longwire(&["sweep", "plan", &file]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(wanted), "{wanted}: {}", stderr(&output));
    };
    let axes = |axes: &str| format!("scenario = \"net.toml\"\n[axes]\n{axes}\n");
    wrong(&axes("upp.rate = [\"1mbit\"]"), "wrong.toml:3:5: upp.rate: there is no link");
    wrong(&axes("\"upp.rate\" = [\"1mbit\"]"), "did you mean \"up\"?");
    let no_such_setting = "up.forward.dealy: a link has no \"dealy\"; did you mean \"delay\"?";
    wrong(&axes("up.forward.dealy = [\"1ms\"]"), no_such_setting);
    wrong(&axes("load.rate = [\"1mbitt\"]"), "the unknown unit");
    wrong(
        &axes("load.modle = [\"cbr\"]"),
        "load.modle: the model poisson has no modle; did you mean \"model\"?",
    );
    wrong("scenario = \"nothing.toml\"\n", "nothing.toml");
    wrong("scenario = \"wrong.toml\"\n", "this is a sweep, not a scenario");
    let huge = "up.rate = { from = 1, to = 1000000, step = 1 }\nup.delay = { from = 1, to = 100, step = 1 }";
    wrong(&axes(huge), "more than 10000000 tasks");
    let port = "[[port]]\nname = \"p\"\ndriver = \"pcap\"\noutput = \"x.pcap\"\n";
    folder.write("out.toml", format!("{SCENARIO}{port}"));
    wrong("scenario = \"out.toml\"\n", "port \"p\" writes a capture");
    let file = folder.write("json.toml", axes("upp.rate = [1]"));
    let report = json(&longwire(&["sweep", "plan", &file, "--json"]), 2);
    assert_eq!((&report["line"], &report["suggestion"]), (&json!(3), &json!("up")), "{report}");
    let file = folder.write("right.toml", SWEEP);
    let output = longwire(&["sweep", "run", &file, "--task", "12"]);
    let told = stderr(&output);
    assert!(told.contains("there is no task 12; the sweep has tasks 0 to 11"), "{told}");
    let output = longwire(&["sweep", "run", &file, "--task", "3,12-20"]);
    assert!(stderr(&output).contains("there is no task 12;"), "{}", stderr(&output));
    let output = longwire(&["sweep", "run", &file, "--task", "1-x"]);
    assert!(stderr(&output).contains("--task: write numbers of tasks"), "{}", stderr(&output));
    // A device such as /dev/full would be read without an end.
    let output = longwire(&["sweep", "run", &file, "--task", "0", "--output", "/dev/null"]);
    assert!(stderr(&output).contains("/dev/null: name a regular file"), "{}", stderr(&output));
}

#[test]
fn rows_become_tables_and_figures() {
    let (folder, file) = folder("sweep-table", SWEEP);
    let (low, high) = (folder.text("low.jsonl"), folder.text("high.jsonl"));
    well(&["sweep", "run", &file, "--task", "6-11", "--output", &high]);
    well(&["sweep", "run", &file, "--task", "0-5", "--output", &low]);
    let csv = well(&["sweep", "table", &high, &low, "--csv", "--columns", "dropped*"]);
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    let head: BTreeSet<_> = lines[0].iter().copied().collect();
    let of_task = ["task", "up.rate", "up.forward.loss", "seed", "status"];
    let drops = ["dropped", "dropped.queue-full", "dropped.loss"];
    assert_eq!(head, of_task.into_iter().chain(drops).collect());
    assert_eq!(lines.len(), 13);
    let loss = lines[0].iter().position(|name| *name == "dropped.loss").unwrap();
    assert_eq!((lines[1][0], lines[1][loss]), ("0", "0"), "without loss nothing is lost, and 0 is a number");
    assert!(lines[3][loss].parse::<u64>().unwrap() > 0, "{csv}");
    assert!(well(&["sweep", "table", &low, "--columns", "source.*.lost"]).starts_with("task"));
    let two = ["--columns", "dropped", "--columns", "taken"];
    let both = well(&[&["sweep", "table", &low][..], &two].concat());
    assert!(both.contains("dropped") && both.contains("taken"), "{both}");
    assert_eq!(well(&["sweep", "table", &low, "--columns", "dropped,taken"]), both);
    let refused = |words: &[&str]| stderr(&longwire(&[&["sweep", "table"], words].concat()));
    let wrong = refused(&[&low, "--columns", "dropped,takn"]);
    assert!(wrong.contains("no row has a column \"takn\"; did you mean \"taken\"?"), "{wrong}");
    assert_eq!(refused(&["/dev/null"]), "error: /dev/null: there are no rows\n");
    let figure = folder.text("figure.svg");
    let (x, y) = ("up.rate", "source.load.delay_ns_p95");
    let told = well(&["sweep", "plot", &low, &high, "--x", x, "--y", y, "--output", &figure]);
    assert!(told.contains("6 points in 2 lines"), "{told}");
    let svg = std::fs::read_to_string(&figure).unwrap();
    assert!(svg.contains("<svg") && svg.contains("up.forward.loss=10 %") && svg.contains("up.rate, Mbit/s"));
    let output = longwire(&["sweep", "plot", &low, "--x", "up.rat", "--y", y, "--output", &figure]);
    assert!(stderr(&output).contains("did you mean \"up.rate\"?"), "{}", stderr(&output));
    let output = longwire(&["sweep", "plot", &low, &high, "--x", x, "--y", y, "--output", &high]);
    assert!(stderr(&output).contains("would be overwritten"), "{}", stderr(&output));
    assert_eq!(rows(&std::fs::read_to_string(&high).unwrap()).len(), 6);
}

#[test]
fn the_example_shows_what_it_says() {
    let file = repository("scenarios/sweeps/dumbbell.toml");
    let file = file.to_str().unwrap();
    assert_eq!(well(&["sweep", "plan", file, "--count"]), "24\n");
    let all = rows(&well(&["sweep", "run", file, "--task", "0,2,20"]));
    let wait = |row: &Value| row["source.flow1.delay_ns_p95"].as_u64().unwrap();
    // The longer queue is full, too, and little waits above the offered rate.
    assert!(wait(&all[1]) > 4 * wait(&all[0]) && wait(&all[1]) > 4 * wait(&all[2]), "{all:#?}");
    assert!(all[0]["dropped"].as_u64() > all[2]["dropped"].as_u64());
    assert!(all[0].get("link.access-s1.forward.in_packets").is_none(), "not among its columns");
}

#[test]
fn the_books_example_has_the_tasks_that_it_shows() {
    let page = std::fs::read_to_string(repository("docs/book/sweeps.md")).unwrap();
    let example = page.split("```toml sweep\n").nth(1).unwrap().split("```").next().unwrap();
    let folder = Folder::new("sweep-book");
    folder.write("net.toml", SCENARIO.replace("\"up\"", "\"wan\"").replace("\"load\"", "\"voice\""));
    let file = folder.write("sweep.toml", example);
    // Three rates, ten delays, three losses, two pairs and three seeds.
    assert_eq!(well(&["sweep", "plan", &file, "--count"]), "540\n");
    let row = &rows(&well(&["sweep", "run", &file, "--task", "17"]))[0];
    assert_eq!((&row["status"], &row["wan.delay"], &row["seed"]), (&json!("ok"), &json!("5 ms"), &json!(3)));
    assert!(row["source.voice.sent"].as_u64() > Some(0) && row.get("elapsed_ns").is_none(), "{row}");
}

/// The script of a page that begins so.
fn block<'a>(page: &'a str, first_line: &str) -> &'a str {
    let block = page.split("```sh\n").skip(1).find(|block| block.starts_with(first_line));
    let block = block.unwrap_or_else(|| panic!("no script that begins with {first_line}"));
    block.split("```").next().unwrap()
}

/// A script in a folder, with the program on the path.
fn in_shell(script: &str, folder: &Folder) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_longwire")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.args(["-euc", script]).current_dir(folder.path("")).env("PATH", path);
    command
}

/// The script of the book's page that begins so.
fn script(first_line: &str, folder: &Folder) -> Command {
    let page = std::fs::read_to_string(repository("docs/book/sweeps.md")).unwrap();
    in_shell(block(&page, first_line), folder)
}

#[test]
fn jobs_of_an_array_make_the_same_rows() {
    let (folder, file) = folder("sweep-array", SWEEP);
    // Slurm runs the script once for each number.
    for number in 0..12 {
        let output = script("#!/bin/bash\n", &folder).env("SLURM_ARRAY_TASK_ID", number.to_string()).output();
        let output = output.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
    }
    let files: Vec<String> = (0..12).map(|number| folder.text(&format!("rows-{number}.jsonl"))).collect();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(text, well(&["sweep", "run", &file]));
}

/// The book's range for jobs of a hundred tasks, of which the last job has fewer.
#[test]
fn the_last_job_of_an_array_takes_what_is_left() {
    let tasks = "scenario = \"net.toml\"\nfor = \"10 ms\"\nseeds = 130\n";
    let (folder, file) = folder("sweep-hundreds", tasks);
    let page = std::fs::read_to_string(repository("docs/book/sweeps.md")).unwrap();
    let range = page.split('`').find(|text| text.starts_with("--task \"$((N")).unwrap();
    let rows: String = ["0", "1"]
        .map(|number| {
            let mut job = in_shell(&format!("longwire sweep run sweep.toml {range}"), &folder);
            let output = job.env("N", number).output().unwrap();
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        })
        .concat();
    assert_eq!(rows, well(&["sweep", "run", &file]));
}

/// A cluster of one node on loopback, whose daemons end when it is dropped.
struct Slurm {
    folder: Folder,
    daemons: Vec<Child>,
}

impl Slurm {
    /// None, with a message, if it can't be.
    fn start(test: &str) -> Option<Self> {
        let daemons = ["/usr/sbin/slurmctld", "/usr/sbin/slurmd"];
        if let Some(missing) = daemons.iter().find(|daemon| !Path::new(daemon).exists()) {
            println!("skipped {test}: {missing} is not installed");
            return None;
        }
        if !abilities().root.available {
            println!("skipped {test}: jobs of Slurm need root");
            return None;
        }
        let mut slurm = Self { folder: Folder::new("slurm"), daemons: Vec::new() };
        let ports = slurm.write_configuration();
        for (daemon, arguments) in daemons.iter().zip([&["-D"][..], &["-D", "-N", "one"]]) {
            let log =
                File::create(slurm.folder.path(Path::new(daemon).file_name().unwrap().to_str().unwrap()));
            let mut command = Command::new(daemon);
            command.args(arguments).env("SLURM_CONF", slurm.folder.path("slurm.conf")).stderr(log.unwrap());
            slurm.daemons.push(command.stdout(Stdio::null()).spawn().unwrap());
        }
        let end = Instant::now() + PATIENCE;
        while ports.iter().any(|port| TcpStream::connect(("127.0.0.1", *port)).is_err()) {
            assert!(Instant::now() < end, "{}", slurm.log());
            std::thread::yield_now();
        }
        Some(slurm)
    }

    /// Writes the configuration, and returns the ports of both daemons. Each CPU of the node runs a job; they
    /// do not have to be there. No control groups, and no other users.
    fn write_configuration(&self) -> [u16; 2] {
        let sockets = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let ports = sockets.each_ref().map(|socket| socket.local_addr().unwrap().port());
        let folder = self.folder.text("");
        let text = format!(
            "ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={}
SlurmdPort={}
SlurmUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
StateSaveLocation={folder}state
SlurmdSpoolDir={folder}spool
SlurmctldPidFile={folder}slurmctld.pid
SlurmdPidFile={folder}slurmd.pid
NodeName=one NodeAddr=127.0.0.1 CPUs=12
PartitionName=all Nodes=one Default=YES
",
            ports[0], ports[1]
        );
        self.folder.write("slurm.conf", text);
        self.folder
            .write("cgroup.conf", format!("CgroupPlugin=cgroup/v1\nCgroupMountpoint={folder}cgroup\n"));
        ["state", "spool"].iter().for_each(|name| std::fs::create_dir(self.folder.path(name)).unwrap());
        ports
    }

    fn log(&self) -> String {
        let read = |name: &&str| std::fs::read_to_string(self.folder.path(name)).unwrap_or_default();
        ["slurmctld", "slurmd"].iter().map(read).collect()
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        // The node before its controller.
        for daemon in self.daemons.iter_mut().rev() {
            let _ = Command::new("kill").arg(daemon.id().to_string()).status();
            let _ = daemon.wait();
        }
    }
}

/// The book's array, by Slurm itself.
#[test]
fn slurm_makes_the_same_rows() {
    let Some(slurm) = Slurm::start("slurm_makes_the_same_rows") else { return };
    let (folder, file) = folder("sweep-slurm", SWEEP);
    let page = std::fs::read_to_string(repository("docs/book/sweeps.md")).unwrap();
    let line = page.split('`').find(|text| text.starts_with("sbatch ")).unwrap();
    folder.write("job.sh", block(&page, "#!/bin/bash\n"));
    let mut command = in_shell(&format!("timeout 100 {line}"), &folder);
    // It returns when all jobs have ended.
    let output = command.env("SLURM_CONF", slurm.folder.path("slurm.conf")).env("SBATCH_WAIT", "1").output();
    let output = output.unwrap();
    assert!(output.status.success(), "{}{}", stderr(&output), slurm.log());
    let files: Vec<String> = (0..12).map(|number| folder.text(&format!("rows-{number}.jsonl"))).collect();
    let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert_eq!(text, well(&["sweep", "run", &file]));
}

#[test]
fn gnu_parallel_makes_the_same_rows() {
    let found = Command::new("parallel").arg("--version").output();
    if !found.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).starts_with("GNU parallel")) {
        return println!("skipped gnu_parallel_makes_the_same_rows: GNU parallel is not installed");
    }
    let (folder, file) = folder("sweep-parallel", SWEEP);
    let output = script("seq 0 ", &folder).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(std::fs::read_to_string(folder.path("rows.jsonl")).unwrap(), well(&["sweep", "run", &file]));
}
