//! The dashboard in Chromium: on a run with test hosts, which needs root, and on a service. Skipped with a
//! message without Chromium.

mod browser;
mod support;

use browser::Browser;
use longwire_lab::Lab;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::Instant;
use support::guarded::Guarded;
use support::lab::can_make_labs;
use support::service::{ROUTED, Service, TWO_PORTS};
use support::{Folder, longwire, stderr, stdout};

/// A run with a dashboard.
struct Running {
    child: Guarded,
    name: String,
    url: String,
}

impl Running {
    fn start(scenario: &str, what: &str) -> Self {
        let name = format!("t{}-{what}", std::process::id());
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .args(["run", scenario, "--name", &name, "--web=0", "--json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let mut said = String::new();
        let url = lines
            .by_ref()
            .inspect(|line| said += line)
            .find_map(|line| line.strip_prefix("dashboard: ").map(String::from));
        let url = url.unwrap_or_else(|| panic!("{said}"));
        std::thread::spawn(move || lines.for_each(drop));
        Self { child: Guarded::terminated(child), name, url }
    }

    /// The lowest round trip of some pings from host a to host b, in ms.
    fn round_trip(&self) -> f64 {
        let mut command = Lab::open(&self.name).unwrap().host("a").unwrap().command("ping").unwrap();
        let output = command.args(["-n", "-q", "-c", "5", "-i", "0.05", "10.0.0.2"]).output().unwrap();
        let text = stdout(&output);
        let least = text.split("min/avg/max/mdev = ").nth(1).and_then(|rest| rest.split('/').next());
        least.and_then(|ms| ms.parse().ok()).unwrap_or_else(|| panic!("{text}"))
    }

    fn stop(&mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", "TERM", &pid]).status().unwrap().success());
        assert!(self.child.wait().unwrap().success());
    }
}

/// The field of a setting, as an expression.
fn field(setting: &str) -> String {
    let named = format!("s.querySelector('label')?.textContent === '{setting}'");
    let settings = "[...document.querySelectorAll('#settings .setting')]";
    format!("{settings}.find((s) => {named})?.querySelector('input:not([type=range])')")
}

/// Enters a value into a setting's field and leaves it.
fn write(browser: &mut Browser, setting: &str, text: &str) {
    let field = field(setting);
    browser.value(&format!(
        "{{ const f = {field}; f.value = '{text}'; f.dispatchEvent(new Event('change')); 1 }}"
    ));
}

/// Two hosts, a link between them, and a past and a future change of it.
fn two_hosts(folder: &Folder) -> String {
    folder.write(
        "two.toml",
        "[[host]]\nname = 'a'\naddress = ['10.0.0.1/24']\n[[host]]\nname = 'b'\naddress = ['10.0.0.2/24']\n\
         [[link]]\nname = 'up'\nbetween = ['a', 'b']\nrate = '10 Mbit/s'\ndelay = '20 ms'\n\
         [[at]]\ntime = '1 s'\nlink = 'up.backward'\ndelay = '21 ms'\n\
         [[at]]\ntime = '1 h'\nlink = 'up.backward'\ndelay = '22 ms'\n",
    )
}

/// Curves have their last values, and the light has a verdict.
fn curves_and_light_are_live(browser: &mut Browser) {
    browser.wait("document.querySelectorAll('.chart .u-wrap').length >= 3");
    browser
        .wait("[...document.querySelectorAll('.chart .keys')].some((keys) => /\\d/.test(keys.textContent))");
    browser.wait("['good', 'bad'].includes(document.getElementById('light').dataset.state)");
    browser.wait("document.getElementById('verdict').textContent.includes('aithful')");
}

#[test]
fn the_dashboard_shows_a_run_and_changes_it() {
    let test = "the_dashboard_shows_a_run_and_changes_it";
    let folder = Folder::new("dashboard");
    let Some(mut browser) =
        can_make_labs(test).then(|| Browser::start(test, &folder.path("profile"))).flatten()
    else {
        return;
    };
    let scenario = two_hosts(&folder);
    let mut run = Running::start(&scenario, "dash");
    browser.open(&run.url, (1440, 900), "light");

    // It loads: links, graph, settings, schedule.
    browser.wait("document.querySelectorAll('#table tbody tr').length === 2");
    browser.wait("document.querySelectorAll('#topology .node').length === 2");
    browser.wait(&format!("{}?.value === '20 ms'", field("delay")));
    browser.wait("document.querySelectorAll('#timeline .event').length === 2");
    browser.wait("document.getElementById('log').textContent.includes('up.backward')");

    // It is live: packets on the link are counted.
    assert!(run.round_trip() >= 40.0);
    browser.wait("!document.querySelector('#facts').textContent.includes('Carried0 B')");
    curves_and_light_are_live(&mut browser);

    // A field changes the link at once, and packets follow.
    write(&mut browser, "delay", "150 ms");
    browser.wait("document.getElementById('log').textContent.includes('up.forward: delay 150 ms')");
    let shown = stdout(&longwire(&["ctl", "get", "up.forward", "--instance", &run.name]));
    assert!(shown.contains("150 ms"), "{shown}");
    assert!(run.round_trip() >= 170.0);

    // A slider does, too.
    browser.value(
        "{ const s = document.querySelector('#settings input[type=range][aria-label^=delay]'); s.value = 1; \
         s.dispatchEvent(new Event('input')); 1 }",
    );
    browser.wait("document.getElementById('log').textContent.includes('delay 100 us')");

    // An invalid value is refused beside its field, and named.
    let hostile = "<img src=x onerror=document.title=1>";
    write(&mut browser, "rate", hostile);
    let wrong = "document.querySelector('#settings .wrong:not([hidden])')";
    browser.wait(&format!("{wrong}?.textContent.includes('{hostile}')"));
    assert_eq!(browser.value("document.querySelectorAll('img').length"), 1, "the icon");
    browser.wait(&format!("{}.getAttribute('aria-invalid') === 'true'", field("rate")));

    // The chosen link is in the address, and the keyboard chooses another.
    browser.value(
        "{ const e = document.querySelector('#topology .edge[data-name=\"up.backward\"]'); e.focus(); \
         e.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })); 1 }",
    );
    browser.wait("document.getElementById('panel-title').textContent === 'up.backward'");
    browser.wait("location.hash === '#links/up.backward'");

    the_cursor_shows_what_comes(&mut browser);

    // It fits a telephone, and the dark.
    browser.resize((360, 740), "dark");
    browser.wait("document.documentElement.scrollWidth <= 360");
    browser.wait("getComputedStyle(document.body).backgroundColor === 'rgb(14, 20, 27)'");

    // It did not violate its own policy; the one failed request is the refused change.
    let others = browser.errors.iter().filter(|error| !error.contains("422"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());

    // The end of the run is shown.
    run.stop();
    browser.wait("!document.getElementById('trouble').hidden");
    browser.wait("document.getElementById('trouble').textContent.includes('has ended')");
}

/// The keyboard moves the cursor of the timeline; a node of the topology is an object, too.
fn the_cursor_shows_what_comes(browser: &mut Browser) {
    let press = |key: &str| {
        let event = format!("new KeyboardEvent('keydown', {{ key: '{key}' }})");
        format!("document.getElementById('timeline').dispatchEvent({event})")
    };
    let note = "document.getElementById('timeline-note').textContent";
    browser.value(&press("ArrowRight"));
    browser.wait(&format!("{note} === '1:00:00 up.backward: delay 22 ms'"));
    assert_eq!(browser.value("document.getElementById('timeline-note').getAttribute('aria-live')"), "polite");
    browser.value(&press("ArrowLeft"));
    browser.wait(&format!("{note} === '0:01 up.backward: delay 21 ms'"));
    browser.value(&press("Escape"));
    browser.wait(&format!("{note}.startsWith('next in ')"));
    browser.value("document.querySelector('#topology .node').dispatchEvent(new Event('click'))");
    browser
        .wait("location.hash === '#ports/a' && document.getElementById('panel-title').textContent === 'a'");
}

/// Processor time so far of all processes of the browser, and of the run, in hundredths of a second.
fn processor_times(browser: &Browser, run: &Running) -> [u64; 2] {
    // Fields 5 (process group), 14 and 15 (time in user and in system mode, in ticks) of proc_pid_stat(5);
    // the second is a name in parentheses.
    let times = |entry: std::fs::DirEntry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at - 3)?.parse::<u64>().ok();
        Some((pid, number(5)?, number(14)? + number(15)?))
    };
    let all: Vec<_> = std::fs::read_dir("/proc").unwrap().flatten().filter_map(times).collect();
    let own = all.iter().filter(|(_, group, _)| *group == u64::from(browser.group()));
    let of_run = all.iter().filter(|(pid, ..)| *pid == run.child.id());
    [own.map(|(.., time)| time).sum(), of_run.map(|(.., time)| time).sum()]
}

#[test]
fn of_many_links_a_page_is_shown_and_any_is_found() {
    let test = "of_many_links_a_page_is_shown_and_any_is_found";
    let folder = Folder::new("dashboard");
    let Some(mut browser) =
        can_make_labs(test).then(|| Browser::start(test, &folder.path("profile"))).flatten()
    else {
        return;
    };
    let many = folder.write(
        "many.toml",
        "[[port]]\nname = 'homes'\ndriver = 'source'\naddresses = '10.0.0.0/16'\n\
         [[port]]\nname = 'server'\ndriver = 'source'\naddresses = '198.51.100.1'\n\
         [[link]]\nname = 'dsl{n}'\ncount = 5000\nbetween = ['homes', 'server']\ndelay = '12 ms'\n\
         match = [{ source = '{10.0.0.0 + n}', destination = '198.51.100.1' }]\n",
    );
    let run = Running::start(&many, "many");
    browser.open(&run.url, (1440, 900), "dark");
    browser.wait("/of 10000$/.test(document.getElementById('count').textContent)");
    let rows = "[...document.querySelectorAll('#table tbody tr:not([hidden])')]";
    assert_eq!(browser.value(&format!("{rows}.length")), 25);

    // A look asks for the rows of one page, and for nothing else that grows with the links.
    browser.value("performance.clearResourceTimings()");
    let (begin, [of_browser, of_run]) = (Instant::now(), processor_times(&browser, &run));
    // The page alone: checks of a condition would take processor time, too.
    browser.value("new Promise((done) => setTimeout(() => done(1), 4000))");
    let [browser_now, run_now] = processor_times(&browser, &run);
    // Printed and not judged: other tests run meanwhile.
    let share = |ticks: u64| ticks as f64 / begin.elapsed().as_secs_f64();
    let paint = "performance.getEntriesByType('paint').map((one) => `${one.name} ${one.startTime} ms`)";
    println!(
        "10000 links: {}; of one processor, Chromium {:.1} %, longwire {:.1} %",
        browser.value(paint),
        share(browser_now.saturating_sub(of_browser)),
        share(run_now.saturating_sub(of_run))
    );
    browser.wait(
        "performance.getEntriesByType('resource').filter((one) => one.name.includes('summary')).length > 3",
    );
    let asked = browser.value(
        "{ const all = performance.getEntriesByType('resource'); \
         const looks = all.filter((one) => one.name.includes('summary')).length; \
         [all.length / looks, all.reduce((sum, one) => sum + one.encodedBodySize, 0) / looks] }",
    );
    assert!(asked[0].as_f64().unwrap() < 4.0 && asked[1].as_f64().unwrap() < 40_000.0, "{asked}");

    // The instance sorts them by the column whose head is clicked.
    let head = "[...document.querySelectorAll('#table th')].find((one) => one.textContent === 'Queue')";
    browser.value(&format!("{head}.querySelector('button').click()"));
    browser.wait(&format!("{head}.getAttribute('aria-sort') === 'descending'"));
    browser.wait("document.getElementById('count').textContent.includes('the highest first')");
    browser.wait(&format!("{rows}.length === 25"));
    browser.value(
        "{ const f = document.getElementById('find'); f.value = 'dsl777'; \
         f.dispatchEvent(new Event('input')); 1 }",
    );
    browser
        .wait(&format!("{rows}.length === 2 && {rows}.every((row) => row.textContent.includes('dsl777'))"));
}

/// Writes a token into the form that asks for one, and sends it.
fn give(browser: &mut Browser, token: &str) {
    browser.value(&format!(
        "{{ document.getElementById('token').value = '{token}'; \
         document.querySelector('#gate button').click(); 1 }}"
    ));
}

#[test]
fn a_token_is_asked_for_and_kept_in_the_tab() {
    let test = "a_token_is_asked_for_and_kept_in_the_tab";
    let folder = Folder::new("dashboard-token");
    let Some(mut browser) = Browser::start(test, &folder.path("profile")) else { return };
    let [read, steer, unknown] = ["a", "b", "c"].map(|letter| letter.repeat(32));
    let tokens = folder.write("tokens", format!("read {read}\nsteer {steer}\n"));
    std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = folder.write("net.toml", TWO_PORTS);
    let service = Service::start(&folder, &[&file, "--listen", "127.0.0.1:0", "--tokens", &tokens]);
    let url = format!("http://{}/", service.started["address"].as_str().unwrap());
    browser.open(&url, (1440, 900), "light");
    let closed = "!document.getElementById('gate').hidden && document.querySelector('main').hidden";
    browser.wait(closed);

    // What no token is, and one that is not known.
    give(&mut browser, "two words");
    browser.wait("document.getElementById('token-wrong').textContent.includes('no spaces')");
    give(&mut browser, &unknown);
    browser.wait("document.getElementById('token-wrong').textContent.includes('does not know')");
    assert_eq!(browser.value("sessionStorage.length"), 0);

    // One of a scope that is too small for changes.
    give(&mut browser, &read);
    let rows = "document.querySelectorAll('#table tbody tr').length === 2";
    browser.wait(rows);
    browser.wait(&format!("{}?.value === '10 ms'", field("delay")));
    write(&mut browser, "delay", "30 ms");
    let wrong = "document.querySelector('#settings .wrong:not([hidden])')";
    browser.wait(&format!("{wrong}?.textContent.includes('your scope is read, and this needs steer')"));
    assert_eq!(browser.value("sessionStorage.getItem('longwire-token')"), read.as_str());
    assert_eq!(browser.value("localStorage.length + document.cookie.length"), 0);

    // It outlives a reload, and is forgotten when asked.
    browser.open(&url, (360, 740), "dark");
    browser.wait(rows);
    browser.value("document.getElementById('forget-token').click()");
    browser.wait(closed);
    assert_eq!(browser.value("sessionStorage.length"), 0);
    browser.wait("document.documentElement.scrollWidth <= 360");

    give(&mut browser, &steer);
    browser.wait(&format!("{}?.value === '10 ms'", field("delay")));
    write(&mut browser, "delay", "40 ms");
    browser.wait("document.getElementById('log').textContent.includes('up.forward: delay 40 ms')");
    assert!(stdout(&service.ctl(&["get", "up.forward"])).contains("40 ms"));
    // It goes on looking.
    let looks = "performance.getEntriesByType('resource').filter((one) => one.name.includes('summary'))";
    browser.value("performance.clearResourceTimings()");
    browser.wait(&format!("{looks}.length > 3"));
    let others = browser.errors.iter().filter(|error| !error.contains("401") && !error.contains("403"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(service.end(), Some(0));
}

/// [`ROUTED`] with a flow and a program instead of a route, and a medium: one object of each kind.
fn every_kind() -> String {
    let flow = "scheduler = \"gmr3\"\nprocessors = 1\nclock = \"600 MHz\"\ncycles = 600\n\
                flows = [{ name = \"voice\", key = { source = \"10.0.1.9\" }, weight = 3 }]\n\
                line-rate = \"1 Gbit/s\"";
    let routed = ROUTED.replace("routes = [{ to = \"10.7.0.0/16\", via = \"10.0.2.9\" }]", flow);
    let others = r#"
[[forwarder]]
router = "r"
program = "syn-monitor"
data = "00000000"

[[medium]]
name = "cell"
kind = "half-duplex"

[[bridge]]
name = "air"

[[port]]
name = "c"
driver = "source"
addresses = "10.0.3.1"

[[link]]
name = "radio"
from = "c"
to = "air"
medium = "cell"
"#;
    routed + others
}

/// Chooses an object by the tab of its kind and its row.
fn choose(browser: &mut Browser, kind: &str, name: &str) {
    browser.wait(&format!("document.querySelector('#kinds [data-kind={kind}]')"));
    browser.value(&format!("document.querySelector('#kinds [data-kind={kind}]').click()"));
    let row =
        format!("[...document.querySelectorAll('#table td button')].find((b) => b.textContent === '{name}')");
    browser.wait(&row);
    browser.value(&format!("{row}.click()"));
    browser.wait(&format!("document.getElementById('panel-title').textContent === '{name}'"));
}

/// Waits until the log has this change.
fn logged(browser: &mut Browser, change: &str) {
    browser.wait(&format!("document.getElementById('log').textContent.includes('{change}')"));
}

/// Once a link drops packets there is a chart of that, with a line for each reason.
fn drops_are_shown_by_reason(browser: &mut Browser, service: &Service) {
    choose(browser, "links", "up");
    let title = "chart.querySelector('h3').textContent.startsWith('Drops by reason')";
    let chart = format!("[...document.querySelectorAll('#charts .chart')].find((chart) => {title})");
    browser.wait(&format!("{chart}?.hidden === true"));
    // Of 1 Mbit/s.
    let output = service.ctl(&["set", "up", "loss=20%", "rate=300kbit", "queue=3 packets"]);
    assert!(output.status.success(), "{}", stderr(&output));
    for reason in ["loss", "queue-full"] {
        let line = format!("/{reason} (?!0\\/s)\\d/.test({chart}.querySelector('.keys').textContent)");
        browser.wait(&line);
    }
    assert_eq!(browser.value(&format!("{chart}.hidden || {chart}.querySelectorAll('.u-wrap').length")), 1);
    assert_eq!(browser.value(&format!("{chart}.querySelector('.keys').children.length")), 2);
}

fn routes_are_added(browser: &mut Browser) {
    // A route that is not there yet, and one that can't be.
    choose(browser, "routers", "r");
    let add = |value: &str| {
        format!(
            "{{ const [name, value] = document.querySelectorAll('#settings .add input'); \
             name.value = '10.8.0.0/16'; value.value = '{value}'; \
             document.querySelector('#settings .add button').click(); 1 }}"
        )
    };
    browser.value(&add("via nowhere"));
    browser
        .wait("document.querySelector('#settings details .wrong:not([id])').textContent.includes('nowhere')");
    browser.value(&add("via 10.0.2.9"));
    logged(browser, "r: route.10.8.0.0/16 via 10.0.2.9");
    browser.wait(&format!("{}?.value === 'via 10.0.2.9 dev b'", field("route.10.8.0.0/16")));
    // Enter behind its name leads to the value, and does not remove it.
    browser.value(
        "{ const [name, value] = document.querySelectorAll('#settings .add input'); \
         name.value = '10.8.0.0/16'; \
         name.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); \
         if (document.activeElement !== value) throw new Error('the name was sent'); 1 }",
    );
}

#[test]
fn objects_of_every_kind_are_changed_in_place() {
    let test = "objects_of_every_kind_are_changed_in_place";
    let folder = Folder::new("dashboard-kinds");
    let Some(mut browser) = Browser::start(test, &folder.path("profile")) else { return };
    let file = folder.write("every.toml", every_kind());
    let service = Service::start(&folder, &[&file, "--listen", "127.0.0.1:0"]);
    let url = format!("http://{}/", service.started["address"].as_str().unwrap());
    browser.open(&url, (1440, 900), "light");
    let wrong = "document.querySelector('#settings .wrong:not([hidden])')?.textContent";

    // What flows get of a router's processors, and what its programs take of a packet's budget.
    for text in ["weight 3", "Budget of a packet", "syn-monitor"] {
        let bars = "[...document.querySelectorAll('#router-list .share')]";
        browser.wait(&format!("{bars}.some((bar) => bar.textContent.includes('{text}'))"));
    }

    drops_are_shown_by_reason(&mut browser, &service);

    choose(&mut browser, "sources", "video");
    write(&mut browser, "rate", "2 Mbit/s");
    logged(&mut browser, "video: rate 2 Mbit/s");
    assert!(stdout(&service.ctl(&["get", "video"])).contains("2 Mbit/s"));

    choose(&mut browser, "media", "cell");
    write(&mut browser, "rate", "20 Mbit/s");
    logged(&mut browser, "cell: rate 20 Mbit/s");

    // A slider, and what is beyond its range.
    choose(&mut browser, "flows", "r/voice");
    browser.value(
        "{ const s = document.querySelector('#settings input[type=range]'); s.value = 1000; \
         s.dispatchEvent(new Event('input')); 1 }",
    );
    logged(&mut browser, "r/voice: weight 65535");
    write(&mut browser, "weight", "70000");
    browser.wait(&format!("{wrong}?.includes('out of range: write an integer from 1 to 65535')"));
    assert!(stdout(&service.ctl(&["get", "r/voice"])).contains("65535"));

    routes_are_added(&mut browser);

    choose(&mut browser, "forwarders", "r/syn-monitor");
    write(&mut browser, "data", "0000");
    browser.wait(&format!("{wrong}?.length > 0"));
    write(&mut browser, "data", "00000007");
    logged(&mut browser, "r/syn-monitor: data 00000007");
    assert_eq!(browser.value("location.hash"), "#forwarders/r%2Fsyn-monitor");

    // Of a port nothing can change; what it counts is shown.
    choose(&mut browser, "ports", "a");
    browser.wait("document.getElementById('settings').hidden");
    browser.wait("document.getElementById('facts').textContent.includes('In frames')");
    let others = browser.errors.iter().filter(|error| !error.contains("422"));
    assert_eq!(others.collect::<Vec<_>>(), Vec::<&String>::new());
    assert_eq!(service.end(), Some(0));
}
