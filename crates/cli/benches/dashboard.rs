//! What the dashboard of 10 000 links costs, in Chromium: `cargo xtask bench dashboard`. On a quiet machine,
//! `cargo bench -p longwire --bench dashboard -- --pictures docs/book` takes the book's pictures of it.
//!
//! Processor time is that of whole processes, from `/proc`; that of the page's main thread is Chromium's own
//! count.

#[path = "../tests/browser/mod.rs"]
mod browser;
#[path = "../tests/support/mod.rs"]
mod support;

use browser::Browser;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use support::Folder;

/// How long each state is measured.
const TIME: Duration = Duration::from_secs(20);
/// How long a run settles before it is measured.
const SETTLE: Duration = Duration::from_secs(5);

/// 5000 lines in two directions, of which a hundred carry packets.
const LINKS: &str = "[[port]]\nname = 'homes'\ndriver = 'source'\naddresses = '10.0.0.0/16'\n\
    [[port]]\nname = 'server'\ndriver = 'source'\naddresses = '198.51.100.1'\n\
    [[link]]\nname = 'dsl{n}'\ncount = 5000\nbetween = ['homes', 'server']\nrate = '1 Mbit/s'\n\
    delay = '12 ms'\n\
    match = [{ source = '{10.0.0.0 + n}', destination = '198.51.100.1' }]\n\
    [[source]]\nname = 'load{n}'\ncount = 100\nfrom = 'server'\nto = 'homes'\n\
    destination = '{10.0.0.0 + n}'\n\
    size = '500 B'\nrate = '40 kbit/s'\n";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().position(|arg| arg == "--pictures") {
        // Cargo starts it in the crate's folder.
        Some(at) => pictures(&support::repository(args.get(at + 1).map_or("docs/book", String::as_str))),
        None => measure(),
    }
}

/// A run with a dashboard.
struct Running {
    child: Child,
    url: String,
}

impl Running {
    /// Runs a scenario in a file of this folder.
    fn start(folder: &Folder, name: &str, scenario: &str) -> Self {
        folder.write(name, scenario);
        let mut child = Command::new(env!("CARGO_BIN_EXE_longwire"))
            .current_dir(folder.path(""))
            .args(["run", name, "--web=0", "--json"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("longwire starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines().map_while(Result::ok);
        let url = lines.by_ref().find_map(|line| line.strip_prefix("dashboard: ").map(String::from));
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, url: url.expect("the run has a dashboard") }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = Command::new("kill").args(["-s", "TERM", &self.child.id().to_string()]).status();
        let _ = self.child.wait();
    }
}

fn measure() {
    let folder = Folder::new("dashboard-bench");
    let Some(mut browser) = Browser::start("dashboard", &folder.path("profile")) else { return };
    let run = Running::start(&folder, "links.toml", LINKS);
    let server = [run.child.id()];
    sleep(SETTLE);
    let alone = share(|| used(&server), TIME);

    browser.open(&run.url, (1440, 900), "light");
    browser.wait("performance.getEntriesByName('shown').length");
    let first = |name: &str| format!("performance.getEntriesByName('{name}')[0]?.startTime ?? NaN");
    let paint = browser.value(&first("first-contentful-paint"));
    let rows = browser.value(&first("shown"));
    sleep(SETTLE);
    browser.value(
        "globalThis.touched = 0; new MutationObserver((all) => { touched += all.length; }).observe(\
         document.body, { subtree: true, childList: true, characterData: true, attributes: true }); \
         performance.setResourceTimingBufferSize(10000); performance.clearResourceTimings(); 1",
    );
    let group = browser.group();
    let page = || used(&members(group));
    let (before, from, at) = (tasks(&mut browser), (used(&server), page()), Instant::now());
    sleep(TIME);
    let seconds = at.elapsed().as_secs_f64();
    let of = |after: f64, before: f64| 100.0 * (after - before) / seconds;
    let (server_share, browser_share) = (of(used(&server), from.0), of(page(), from.1));
    let main_share = of(tasks(&mut browser), before);
    let asked = browser.value(
        "{ const all = performance.getEntriesByType('resource'); \
         [all.length, all.reduce((sum, one) => sum + one.encodedBodySize, 0), touched] }",
    );
    let each = |index: usize| asked[index].as_f64().unwrap_or(f64::NAN) / seconds;
    // As when another tab is in front.
    browser.value(
        "Object.defineProperty(document, 'hidden', { value: true }); \
         document.dispatchEvent(new Event('visibilitychange')); 1",
    );
    sleep(Duration::from_secs(2));
    browser.value("performance.clearResourceTimings()");
    sleep(SETTLE);
    let hidden = browser.value("performance.getEntriesByType('resource').length");

    println!("dashboard of 10 000 links, {seconds:.0} s");
    println!(
        "first paint                       {:8.0} ms (target: 1000)",
        paint.as_f64().unwrap_or(f64::NAN)
    );
    println!("first rows                        {:8.0} ms", rows.as_f64().unwrap_or(f64::NAN));
    println!("page, main thread                 {main_share:8.1} % of a core");
    println!("browser, all its processes        {browser_share:8.1} % of a core");
    println!("run, with the page                {server_share:8.1} % of a core");
    println!("run, without                      {alone:8.1} % of a core");
    println!(
        "page and what it costs the run    {:8.1} % of a core (target: 5)",
        main_share + server_share - alone
    );
    println!("requests                          {:8.1} a second", each(0));
    println!("bytes                             {:8.0} a second", each(1));
    println!("nodes of the page changed         {:8.0} a second", each(2));
    println!("requests while hidden             {hidden:>8}");
}

/// The time that the page's main thread has been busy, in seconds.
fn tasks(browser: &mut Browser) -> f64 {
    browser.call("Performance.enable", json!({}));
    let metrics = browser.call("Performance.getMetrics", json!({}));
    let task = |metric: &&Value| metric["name"] == "TaskDuration";
    metrics["metrics"].as_array().and_then(|all| all.iter().find(task)?["value"].as_f64()).unwrap_or(f64::NAN)
}

/// The share of a core that something uses during `time`, in percent.
fn share(used: impl Fn() -> f64, time: Duration) -> f64 {
    let (before, at) = (used(), Instant::now());
    sleep(time);
    100.0 * (used() - before) / at.elapsed().as_secs_f64()
}

/// The processor time of processes so far, in seconds.
fn used(processes: &[u32]) -> f64 {
    // The kernel counts a hundred ticks a second for user space, whatever its own tick (proc_pid_stat(5)).
    processes.iter().filter_map(|pid| fields(*pid)).map(|stat| (stat[11] + stat[12]) as f64 / 100.0).sum()
}

/// The processes of a group.
fn members(group: u32) -> Vec<u32> {
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| fields(*pid).is_some_and(|stat| stat[2] == u64::from(group))).collect()
}

/// The numbers of a process behind its name, its state first, as 0.
fn fields(pid: u32) -> Option<Vec<u64>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let numbers = text.rsplit_once(") ")?.1.split(' ').map(|field| field.trim().parse().unwrap_or(0));
    Some(numbers.collect())
}

/// Takes the pictures of the book: wide and narrow, light and dark, with charts of a minute and a half.
fn pictures(folder: &Path) {
    let own = Folder::new("dashboard-pictures");
    let Some(mut browser) = Browser::start("pictures", &own.path("profile")) else { return };
    let run = Running::start(&own, "home-access.toml", include_str!("pictures.toml"));
    browser.open(&run.url, (1440, 1400), "light");
    browser.wait("performance.getEntriesByName('shown').length");
    sleep(Duration::from_secs(100));
    for (width, place) in [(1440, "wide"), (360, "narrow")] {
        for (scheme, ending) in [("light", ""), ("dark", "-dark")] {
            // What is outside the window is not drawn: first more than the page needs, then just that.
            browser.resize((width, 4000), scheme);
            sleep(Duration::from_secs(3));
            let height = browser.value("Math.ceil(document.body.getBoundingClientRect().height)");
            let height = height.as_u64().and_then(|height| u32::try_from(height).ok());
            browser.resize((width, height.expect("a page has a height")), scheme);
            sleep(Duration::from_secs(2));
            let file = folder.join(format!("dashboard-{place}{ending}.png"));
            std::fs::write(&file, browser.picture()).expect("the folder can be written to");
            println!("{}: {}", file.display(), browser.value("document.getElementById('light').innerText"));
        }
    }
}
