//! The looks of the dashboard at a run, in Chromium: that they go on, follow another run and another graph,
//! and show what was answered. Skipped with a message without Chromium.

mod browser;
mod support;

use browser::Browser;
use serde_json::json;
use support::service::{Service, TWO_PORTS};
use support::{Folder, stderr};

/// [`TWO_PORTS`] with a third port, a link to it, and a source.
fn three_ports() -> String {
    let others = r#"
[[port]]
name = "c"
driver = "source"
addresses = "10.0.1.3"

[[link]]
name = "there"
from = "a"
to = "c"
delay = "1 ms"

[[source]]
name = "video"
from = "a"
to = "b"
rate = "1 Mbit/s"
"#;
    TWO_PORTS.to_owned() + others
}

/// A service of a scenario, and its dashboard.
fn shown(test: &str, folder: &Folder, scenario: &str) -> Option<(Service, Browser)> {
    let mut browser = Browser::start(test, &folder.path("profile"))?;
    let file = folder.write("net.toml", scenario);
    let service = Service::start(folder, &[&file, "--listen", "127.0.0.1:0"]);
    let url = format!("http://{}/", service.started["address"].as_str().unwrap());
    browser.open(&url, (1440, 900), "light");
    browser.wait("document.querySelectorAll('#table tbody tr').length > 0");
    Some((service, browser))
}

/// From now on, answers are what the statements make of their `body`.
fn edit_answers(browser: &mut Browser, statements: &str) {
    browser.value(&format!(
        "{{ const real = window.fetch; window.fetch = async (...all) => {{ \
         const answer = await real(...all); const body = await answer.json(); {statements} \
         return new Response(JSON.stringify(body), {{ status: answer.status }}); }}; 1 }}"
    ));
}

/// Another run at the same address counts from its beginning, and so do the charts.
#[test]
fn another_run_is_shown_from_its_beginning() {
    let test = "another_run_is_shown_from_its_beginning";
    let folder = Folder::new("dashboard-another");
    let Some((service, mut browser)) = shown(test, &folder, &three_ports()) else { return };
    // The first is eleven days old.
    browser.value("window.age = 1e15");
    let older = "for (const key of ['elapsed_ns', 'counted_ns']) if (key in body) body[key] += window.age;";
    edit_answers(&mut browser, older);
    browser.wait("document.querySelector('#totals .value').textContent.startsWith('277:4')");
    let rate = "document.querySelector('#table tbody td:nth-child(2)').textContent";
    browser.wait(&format!("/^(9\\d\\d kbit|1(\\.\\d+)? Mbit)/.test({rate})"));
    browser.value("window.age = 0");
    let output = service.ctl(&["set", "video", "rate=300kbit"]);
    assert!(output.status.success(), "{}", stderr(&output));
    browser.wait(&format!("/^(2[6-9]|3[0-3])\\d kbit/.test({rate})"));
    assert_eq!(service.end(), Some(0));
}

#[test]
fn a_link_in_the_place_of_another_is_drawn() {
    let test = "a_link_in_the_place_of_another_is_drawn";
    let folder = Folder::new("dashboard-graph");
    let Some((service, mut browser)) = shown(test, &folder, &three_ports()) else { return };
    let edge = |name: &str| format!("document.querySelector('#topology .edge[data-name={name}]')");
    browser.wait(&edge("there"));
    // As many links as before.
    let change = json!({ "add": "[[link]]\nname = 'back'\nfrom = 'c'\nto = 'a'\n", "remove": ["there"] });
    let request = json!({
        "method": "PATCH", "headers": { "Content-Type": "application/json" }, "body": change.to_string(),
    });
    let status = browser.value(&format!("fetch('/v1/scenario', {request}).then((answer) => answer.status)"));
    assert_eq!(status, 200);
    browser.wait(&format!("{} && !{}", edge("back"), edge("there")));
    assert_eq!(service.end(), Some(0));
}

/// Of very many links a part is drawn, whose loads are live behind every tab.
#[test]
fn a_part_of_the_graph_is_live_while_another_table_is_open() {
    let test = "a_part_of_the_graph_is_live_while_another_table_is_open";
    let folder = Folder::new("dashboard-part");
    let many = "[[link]]\nname = 'dsl{n}'\ncount = 130\nfrom = 'a'\nto = 'c'\n\
                match = [{ source = '{10.1.0.0 + n}', destination = '10.0.1.3' }]\n";
    let Some((service, mut browser)) = shown(test, &folder, &(three_ports() + many)) else { return };
    browser.value("document.querySelector('#kinds [data-kind=ports]').click()");
    browser.wait("document.getElementById('count').textContent.endsWith('of 3')");
    let output = service.ctl(&["set", "video", "rate=300kbit"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let edge = "document.querySelector('#topology .edge[data-name=\"up.forward\"]')";
    browser.wait(&format!("/: (2[6-9]|3[0-3])\\d kbit/.test({edge}.getAttribute('aria-label'))"));
    assert_eq!(service.end(), Some(0));
}

/// The light is the instance's verdict, also if nothing has left; only the verdict itself is read out.
#[test]
fn a_fault_without_packets_is_not_faithful() {
    let test = "a_fault_without_packets_is_not_faithful";
    let folder = Folder::new("dashboard-light");
    let Some((service, mut browser)) = shown(test, &folder, &three_ports()) else { return };
    let fault = "if ('fidelity' in body) Object.assign(body, \
        { fidelity: { faithful: false, packets: 0, causes: ['lost'] }, window: null });";
    edit_answers(&mut browser, fault);
    browser.wait("document.getElementById('cause').textContent === 'lost'");
    let light = "document.getElementById('light').dataset.state";
    let verdict = "document.getElementById('verdict').textContent";
    assert_eq!(browser.value(&format!("[{light}, {verdict}]")), json!(["bad", "Not faithful"]));
    edit_answers(&mut browser, "if ('fidelity' in body) body.fidelity = null;");
    browser.wait(&format!("{verdict} === 'No verdict yet'"));
    let spoken = "[...document.querySelectorAll('[role=status]')].map((one) => one.id)";
    assert_eq!(browser.value(spoken), json!(["verdict", "count"]));
    assert_eq!(service.end(), Some(0));
}

/// What the page computes itself.
#[test]
fn numbers_of_the_page_are_exact() {
    let test = "numbers_of_the_page_are_exact";
    let folder = Folder::new("dashboard-numbers");
    let Some((service, mut browser)) = shown(test, &folder, &three_ports()) else { return };
    // A look each 0.2 s for 400 s: five minutes are kept, and percentiles are those of one.
    let percentiles = "import('/history.js').then(({ History }) => { const history = new History(); \
        for (let look = 1; look <= 2000; look += 1) history.add(look * 2e8, 'links', \
        { name: 'x', settings: {}, stats: { queued_bytes: 0, delay_ns: look, drops: [] } }); \
        const all = history.judged('links', 'x'); const last = all.at(-1); \
        return [all.length, last.median, last.high]; })";
    assert_eq!(browser.value(percentiles), json!([1501, 1851, 1998]));
    // The lowest share of a slider is not 0.
    let share = "import('/scales.js').then(({ Scale }) => \
        [0, 1, 1000].map((step) => Scale.of({ format: 'share', 'x-most': 1 }).ofStep(step)))";
    assert_eq!(browser.value(share), json!(["0 %", "0.001 %", "100 %"]));
    let routers = "import('/routers.js').then(({ Routers }) => { \
        new Routers().show({ total: 500, objects: [], counted_ns: 1 }, new Map()); \
        return document.getElementById('routers-title').textContent; })";
    assert_eq!(browser.value(routers), "Routers (0 of 500)");
    // Of more reasons than there are colours, the last line is the sum of the others.
    let reasons = "import('/charts.js').then(({ Charts }) => { const drops = {}; \
        for (const reason of 'abcdefg') drops[reason] = 10; \
        new Charts().show('links', [{ at: 1, drops }, { at: 2, drops }], []); \
        return [...document.querySelectorAll('#charts .chart:last-child .keys > span')] \
        .map((key) => key.textContent); })";
    let shown = json!(["a 10/s", "b 10/s", "c 10/s", "d 10/s", "others 30/s"]);
    assert_eq!(browser.value(reasons), shown);
    let single = "import('/topology.js').then(({ Topology }) => { new Topology(() => {}).show({ nodes: \
        [{ name: 'one', kind: 'host', addresses: [] }], links: [], wires: [] }, false); \
        return document.querySelector('#topology .node').getAttribute('transform'); })";
    let place = browser.value(single);
    assert!(!place.as_str().unwrap().contains("NaN"), "{place}");
    // An answer that is cut off is none.
    let cut = "import('/api.js').then(async ({ api }) => { const real = window.fetch; \
        window.fetch = async () => new Response('{'); try { await api.summary(); } \
        catch (problem) { return problem.message; } finally { window.fetch = real; } })";
    assert_eq!(browser.value(cut), "The run has ended or does not answer.");
    assert_eq!(service.end(), Some(0));
}
