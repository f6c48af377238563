//! The dashboard in Chromium, on a run with test hosts. Needs root and Chromium; skipped with a message
//! otherwise.

mod browser;
mod support;

use browser::Browser;
use longwire_lab::Lab;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use support::{Folder, longwire, stdout};

/// A run with a dashboard.
struct Running {
    child: Child,
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
        Self { child, name, url }
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

impl Drop for Running {
    fn drop(&mut self) {
        if self.child.try_wait().is_ok_and(|ended| ended.is_none()) {
            let _ = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
            let _ = self.child.wait();
        }
    }
}

fn can_run(test: &str) -> bool {
    let ability = longwire_lab::abilities().namespaces;
    if !ability.available {
        println!("{test}: skipped: {}", ability.reason);
    }
    ability.available
}

/// The field of a setting, as an expression.
fn field(setting: &str) -> String {
    let named = format!("s.querySelector('label').textContent === '{setting}'");
    let settings = "[...document.querySelectorAll('#settings .setting')]";
    format!("{settings}.find((s) => {named}).querySelector('input:not([type=range])')")
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

#[test]
fn the_dashboard_shows_a_run_and_changes_it() {
    let test = "the_dashboard_shows_a_run_and_changes_it";
    let folder = Folder::new("dashboard");
    let Some(mut browser) = can_run(test).then(|| Browser::start(test, &folder.path("profile"))).flatten()
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
    browser.wait("location.hash === '#up.backward'");

    // It fits a telephone, and has a dark theme.
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

#[test]
fn of_many_links_a_page_is_shown_and_any_is_found() {
    let test = "of_many_links_a_page_is_shown_and_any_is_found";
    let folder = Folder::new("dashboard");
    let Some(mut browser) = can_run(test).then(|| Browser::start(test, &folder.path("profile"))).flatten()
    else {
        return;
    };
    let many = folder.write(
        "many.toml",
        "[[port]]\nname = 'homes'\ndriver = 'source'\naddresses = '10.0.0.0/16'\n\
         [[port]]\nname = 'server'\ndriver = 'source'\naddresses = '198.51.100.1'\n\
         [[link]]\nname = 'dsl{n}'\ncount = 1000\nbetween = ['homes', 'server']\ndelay = '12 ms'\n\
         match = [{ source = '{10.0.0.0 + n}', destination = '198.51.100.1' }]\n",
    );
    let run = Running::start(&many, "many");
    browser.open(&run.url, (1440, 900), "dark");
    browser.wait("/of \\d{4}$/.test(document.getElementById('count').textContent)");
    let rows = "[...document.querySelectorAll('#table tbody tr:not([hidden])')]";
    assert_eq!(browser.value(&format!("{rows}.length")), 25);
    browser.value(
        "{ const f = document.getElementById('find'); f.value = 'dsl777'; \
         f.dispatchEvent(new Event('input')); 1 }",
    );
    browser
        .wait(&format!("{rows}.length === 2 && {rows}.every((row) => row.textContent.includes('dsl777'))"));
}
