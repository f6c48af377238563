//! The whole view against an instance that is made up, on a terminal that is a buffer.

use crate::app::{App, InstanceOwner, Mode, Tab};
use crate::asking::{Answer, Ask, Asking, ViewRequest};
use crate::draw::draw;
use crate::fields::tests::description;
use crate::keys::{self, Action};
use crate::theme::{Mood, Theme};
use crate::watched::{WatchError, WatchedInstance};
use longwire_control::{
    EventPage, Kind, LoggedEvent, Object, ObjectPage, ObjectQuery, PlannedEvent, PoolUse, Sort, Summary, fits,
};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::style::{Color, Modifier};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// An instance with so many links, whose counters grow with every look.
struct Fake {
    links: usize,
    looks: AtomicU64,
    faults: Vec<String>,
    asked: Arc<Mutex<Vec<ObjectQuery>>>,
    /// So many times it does not describe itself.
    silences: AtomicU64,
}

impl Fake {
    fn link(&self, number: usize) -> Object {
        let looks = self.looks.load(Ordering::Relaxed);
        let stats = json!({
            "in_packets": 1_234_567 * looks, "in_bytes": 0, "out_packets": 1_200_000 * looks,
            "out_bytes": 1_500_000_000 * looks, "queued_packets": 123_456, "queued_bytes": 98_765_432,
            "travelling_packets": 4567, "max_late_ns": 123_456,
            "drops": [["loss", 12_345], ["queue-full", 7]],
            "in_bit_per_s": 987_654_321.0, "out_bit_per_s": (number % 90) as f64 * 1e7 + 123_456.0,
            "load": (number % 90) as f64 / 90.0, "delay_ns": 20_123_456 + number as u64, "down": number == 3,
        });
        let settings = [
            ("rate", "987.65 Mbit/s"),
            ("delay", "20.123456 ms"),
            ("loss", "1.25 %"),
            ("queue", "1000 packets"),
        ];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        Object {
            kind: Kind::Link,
            name: format!("dsl{number}.forward"),
            settings,
            stats,
            members: Vec::new(),
            notes: Vec::new(),
        }
    }

    fn forwarder(name: &str) -> Object {
        let (settings, stats) = (Default::default(), Value::Null);
        Object {
            kind: Kind::Forwarder,
            name: name.into(),
            settings,
            stats,
            members: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl WatchedInstance for Fake {
    fn links(&self) -> Result<usize, WatchError> {
        Ok(self.links)
    }

    fn summary(&self) -> Result<Summary, WatchError> {
        let looks = self.looks.fetch_add(1, Ordering::Relaxed) + 1;
        let faithful = json!({ "faithful": true, "packets": 1000, "brief": null });
        let bad =
            json!({ "faithful": false, "packets": 9, "brief": "CPU busy (3 % of packets > 100 us late)" });
        Ok(Summary {
            scenario: "nets/subscribers.toml".into(),
            elapsed_ns: 75_000_000_000 + looks * 500_000_000,
            fidelity: bad,
            window: json!({ "length_ns": 10_000_000_000u64, "last": { "fidelity": faithful } }),
            in_packets: looks * 1000,
            out_packets: looks * 617,
            out_bytes: looks * 617_000,
            held: 4567,
            dropped: [("loss".to_owned(), 12_345)].into(),
            faults: self.faults.clone(),
            pool: PoolUse { used_bytes: 1_500_000, bytes: 64_000_000 },
            objects: [
                ("links".to_owned(), self.links),
                ("ports".to_owned(), 2),
                ("forwarders".to_owned(), 1),
            ]
            .into(),
        })
    }

    fn page(&self, kind: Kind, choice: &ObjectQuery) -> Result<ObjectPage, WatchError> {
        self.asked.lock().unwrap().push(choice.clone());
        let counted_ns = 500_000_000 * (self.looks.load(Ordering::Relaxed) + 1);
        if kind != Kind::Link {
            let objects = if kind == Kind::Forwarder { vec![Self::forwarder("r1/nat")] } else { Vec::new() };
            return Ok(ObjectPage { total: objects.len(), from: 0, counted_ns, objects });
        }
        let pattern = choice.name.clone().unwrap_or_else(|| "*".into());
        let named = (0..self.links).filter(|number| fits(&format!("dsl{number}.forward"), &pattern));
        let mut all: Vec<usize> = named.collect();
        if choice.sort == Some(Sort::Rate) {
            all.sort_by_key(|number| std::cmp::Reverse(number % 90));
        }
        if choice.reverse {
            all.reverse();
        }
        let page = all.iter().skip(choice.from).take(choice.count);
        let objects = page.map(|&number| self.link(number)).collect();
        Ok(ObjectPage { total: all.len(), from: choice.from, counted_ns, objects })
    }

    fn events(&self, after: u64) -> Result<EventPage, WatchError> {
        let entry = |number: u64| LoggedEvent {
            number,
            at_ns: number * 10_000_000_000,
            kind: "change".into(),
            what: format!("dsl{number}.forward: delay 80 ms"),
        };
        let planned = PlannedEvent {
            at_ns: 90_000_000_000,
            every_ns: None,
            times: None,
            over_ns: None,
            what: "dsl7.forward: rate 5 Mbit/s".into(),
        };
        Ok(EventPage { planned: vec![planned], log: (after + 1..=3).map(entry).collect(), last: 3 })
    }

    fn programs(&self, _router: &str) -> Result<Value, WatchError> {
        let program = json!({ "name": "nat", "fid": 1, "packets": 12, "dropped": 0, "key": "*",
            "cost": { "worst_case_ns": 306.0 } });
        Ok(json!({
            "forwarders": [program],
            "need": { "picoseconds": 306_000 },
            "budget": { "picoseconds": 500_000 },
        }))
    }

    fn description(&self) -> Result<Value, WatchError> {
        let is_silent = self.silences.load(Ordering::Relaxed) > 0;
        if is_silent {
            self.silences.fetch_sub(1, Ordering::Relaxed);
            return Err(WatchError { reason: "no answer".into(), gone: false });
        }
        Ok(description())
    }

    fn set(&self, _: Kind, name: &str, changes: &[(String, String)]) -> Result<Object, WatchError> {
        match changes {
            [(key, value)] if key == "rate" && value == "5mbit" => {
                let mut object = self.link(0);
                object.name = name.into();
                Ok(object)
            }
            _ => Err(WatchError {
                reason: "rate: can't read \"5mbits\"; write it as 10 Mbit/s".into(),
                gone: false,
            }),
        }
    }
}

/// The view of a fake on a terminal of this size.
struct Shown {
    app: App,
    asking: Asking,
    terminal: Terminal<TestBackend>,
    asked: Arc<Mutex<Vec<ObjectQuery>>>,
}

impl Shown {
    fn new(size: (u16, u16), links: usize) -> Self {
        Self::with_faults(size, links, &[])
    }

    fn with_faults(size: (u16, u16), links: usize, faults: &[&str]) -> Self {
        let asked = Arc::<Mutex<_>>::default();
        let faults = faults.iter().map(|fault| (*fault).to_owned()).collect();
        let [looks, silences] = [0, 0].map(AtomicU64::new);
        let fake = Fake { links, looks, faults, asked: Arc::clone(&asked), silences };
        let app =
            App::new(InstanceOwner::ThisProcess, "subscribers".into(), Some("http://127.0.0.1:8399/".into()));
        let terminal = Terminal::new(TestBackend::new(size.0, size.1)).unwrap();
        let asking = Asking::start(Box::new(fake)).unwrap();
        let mut shown = Self { app, asking, terminal, asked };
        // The number of links, and the description.
        (0..2).for_each(|_| shown.answer());
        // The first look says how many rows there are, the second has those that fit.
        (0..3).for_each(|_| shown.look());
        shown
    }

    fn answer(&mut self) {
        let answer = self.asking.answers.recv().unwrap();
        self.app.take(answer);
    }

    /// Asks as the loop does, and draws.
    fn look(&mut self) {
        let wanted = self.app.wanted();
        self.asking.asks.send(Ask::Look(wanted)).unwrap();
        self.answer();
        self.draw();
    }

    fn draw(&mut self) {
        self.terminal.draw(|frame| draw(&mut self.app, Theme::new(true), frame)).unwrap();
    }

    fn key(&mut self, code: KeyCode) -> Action {
        keys::key(&mut self.app, KeyEvent::new(code, KeyModifiers::NONE))
    }

    fn keys(&mut self, text: &str) {
        text.chars().for_each(|typed| drop(self.key(KeyCode::Char(typed))));
    }

    /// The text on the screen.
    fn lines(&self) -> Vec<String> {
        let buffer = self.terminal.backend().buffer();
        let line = |y| (0..buffer.area.width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let plain = |line: String| line.replace('\u{a0}', " ").trim_end().to_owned();
        (0..buffer.area.height).map(line).map(plain).collect()
    }

    fn has(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }

    fn assert_has(&self, texts: &[&str]) {
        for text in texts {
            assert!(self.has(text), "no \"{text}\" in\n{}", self.lines().join("\n"));
        }
    }

    /// The names of the rows, and the selected one.
    fn rows(&self) -> (Vec<String>, Option<String>) {
        let buffer = self.terminal.backend().buffer();
        let (mut names, mut selected) = (Vec::new(), None);
        for (y, line) in self.lines().iter().enumerate().skip(4) {
            let Some(name) = line.split_whitespace().next().filter(|name| name.starts_with("dsl")) else {
                break;
            };
            names.push(name.to_owned());
            if buffer[(0, y as u16)].modifier.contains(Modifier::REVERSED) {
                selected = Some(name.to_owned());
            }
        }
        (names, selected)
    }
}

#[test]
fn a_screen_of_eighty_columns_shows_whole_numbers() {
    let shown = Shown::new((80, 24), 2);
    let lines = shown.lines();
    assert!(lines[0].starts_with("subscribers  1:16  1 234 packets/s"), "{}", lines[0]);
    assert!(lines[0].ends_with("  not faithful; last 10 s: faithful"), "{}", lines[0]);
    assert_eq!(lines[1], "out 9.87 Mbit/s  4 567 held  12 345 dropped  memory 1.50 MB of 64.00 MB");
    assert!(lines[2].starts_with(" links 2   ports 2   forwarders 1   events 3"), "{}", lines[2]);
    let titles: Vec<_> = lines[3].split_whitespace().collect();
    assert_eq!(titles, ["link", "state", "in", "out", "queue", "delay", "drops"]);
    let row = "dsl0.forward  up  987.7 Mbit/s  123.5 kbit/s  123 456  20.12 ms  12 352";
    assert_eq!(lines[4].split_whitespace().collect::<Vec<_>>(), row.split_whitespace().collect::<Vec<_>>());
    shown.assert_has(&[
        "─ dsl0.forward ",
        "rate 987.65 Mbit/s",
        "delay 20.123456 ms",
        "dropped: 12 345 loss, 7 queue-full",
    ]);
    shown.assert_has(&["out 123.5 kbit/s, at most", "next: at 1:30: dsl7.forward: rate 5 Mbit/s"]);
    shown.assert_has(&["0:30  dsl3.forward: delay 80 ms", "? help"]);
    // The curves reach the right edge.
    assert!(lines.iter().any(|line| line.ends_with('█') || line.ends_with('▁')), "{lines:#?}");
}

#[test]
fn a_large_screen_is_used_to_its_edges() {
    let shown = Shown::new((200, 50), 4000);
    let lines = shown.lines();
    assert!(lines[0].ends_with("not faithful: CPU busy (3 % of packets > 100 us late); last 10 s: faithful"));
    assert!(lines[1].ends_with("dashboard http://127.0.0.1:8399/"), "{}", lines[1]);
    let (rows, selected) = shown.rows();
    assert_eq!((rows.len(), selected.as_deref()), (36, Some("dsl0.forward")));
    assert!(lines[7].contains("down"), "{}", lines[7]);
    shown.assert_has(&["p50", "p99", "max late", "123.5 µs", "1 of 4 000"]);
    // Panel beside the table, log below it.
    assert!(lines[3].contains("drops") && lines[3].contains("─ dsl0.forward "), "{}", lines[3]);
    assert!(lines[40].starts_with("─ next: at 1:30"), "{}", lines[40]);
    assert!(lines[49].contains("? help") && lines[49].contains("r reverse"), "{}", lines[49]);
}

#[test]
fn faults_come_before_the_totals_however_long_they_are() {
    let disk = "the log /var/lib/measurements/of/2026/packets.lwlog is incomplete: No space left on device";
    let short = "eth0: interface down";
    for (size, faults, wanted) in [
        ((80, 24), &[short][..], format!("{short}  out 9.87 Mbit/s  4 567 held  12 345 dropped")),
        ((60, 15), &[disk], "the log /var/lib/measurements…plete: No space left on device".into()),
        ((200, 50), &[disk, short], format!("{disk}; {short}  out 9.87 Mbit/s  4 567 held  12 345 dropped")),
    ] {
        let shown = Shown::with_faults(size, 2, faults);
        assert!(shown.lines()[1].starts_with(&wanted), "{size:?}: {}", shown.lines()[1]);
        let bad = Theme::new(true).style(Mood::Bad);
        assert_eq!(shown.terminal.backend().buffer()[(0, 1)].fg, bad.fg.unwrap(), "{size:?}");
    }
}

#[test]
fn the_smallest_screen_leaves_out_columns_and_a_smaller_one_says_so() {
    let shown = Shown::new((60, 15), 4000);
    let lines = shown.lines();
    let titles: Vec<_> = lines[3].split_whitespace().collect();
    assert_eq!(titles, ["link", "out", "queue", "delay", "drops"]);
    let row: Vec<_> = lines[4].split_whitespace().collect();
    assert_eq!(row, ["dsl0.forward", "123.5", "kbit/s", "123", "456", "20.12", "ms", "12", "352"]);
    assert_eq!(lines[1], "out 9.87 Mbit/s  4 567 held  12 345 dropped");
    for size in [(59, 15), (60, 14), (20, 5), (1, 1)] {
        let small = Shown::new(size, 2);
        if size.0 >= 20 {
            small.assert_has(&["60x15"]);
        }
        assert!(!small.has("dsl0"));
    }
}

/// Every number on the screen of every size is one that the fake has: none is a part of one.
#[test]
fn no_size_cuts_a_number() {
    let whole: Vec<String> = Shown::new((400, 60), 3).lines();
    let is_number = |word: &str| word.chars().all(|char| char.is_ascii_digit() || char == '.');
    let known: Vec<String> =
        whole.iter().flat_map(|line| line.split_whitespace()).map(str::to_owned).collect();
    for width in (60..240).step_by(7) {
        for height in [15, 24, 33, 50] {
            let shown = Shown::new((width, height), 3);
            // Rows of the table: what is a number there is a number of the widest screen.
            for line in shown.lines().iter().skip(4).take(3) {
                for word in line.split_whitespace().filter(|word| is_number(word)) {
                    assert!(known.iter().any(|other| other == word), "{width}x{height}: {word} in {line}");
                }
            }
        }
    }
}

#[test]
fn only_rows_on_the_screen_are_asked_for() {
    let mut shown = Shown::new((80, 24), 50_000);
    let height = shown.rows().0.len();
    assert!((5..24).contains(&height), "{height}");
    shown.key(KeyCode::End);
    shown.look();
    assert_eq!(shown.rows().1.as_deref(), Some("dsl49999.forward"));
    shown.key(KeyCode::PageUp);
    shown.look();
    let expected = format!("dsl{}.forward", 49_999 - (height - 1));
    assert_eq!(shown.rows().1, Some(expected));
    shown.keys("gjjk");
    shown.look();
    assert_eq!(shown.rows().1.as_deref(), Some("dsl1.forward"));
    assert!(shown.asked.lock().unwrap().iter().all(|choice| choice.count <= height.max(20)));
}

#[test]
fn columns_sort_and_their_order_turns() {
    let mut shown = Shown::new((80, 24), 100);
    // Name, load, in, out.
    (0..4).for_each(|_| drop(shown.key(KeyCode::Right)));
    shown.look();
    assert!(shown.lines()[3].contains("out▼"), "{}", shown.lines()[3]);
    assert_eq!(shown.rows().0[0], "dsl89.forward");
    shown.keys("r");
    shown.look();
    assert!(shown.lines()[3].contains("out▲"), "{}", shown.lines()[3]);
    assert_eq!(shown.rows().0[0], "dsl90.forward");
    (0..4).for_each(|_| drop(shown.key(KeyCode::Left)));
    assert_eq!(shown.app.wanted().choice.sort, None);
}

#[test]
fn names_are_searched_while_they_are_typed() {
    let mut shown = Shown::new((80, 24), 1000);
    shown.keys("/99");
    shown.look();
    // 99, 199, … 999, and 990 to 998.
    shown.assert_has(&["/99", "1 of 19"]);
    shown.key(KeyCode::Enter);
    shown.keys("j");
    shown.look();
    assert_eq!(shown.rows().1.as_deref(), Some("dsl199.forward"));
    shown.key(KeyCode::Esc);
    shown.look();
    shown.assert_has(&["1 of 1 000"]);
    shown.keys("/nothing");
    shown.look();
    shown.assert_has(&["no name fits; Esc shows all"]);
}

#[test]
fn a_link_is_changed_and_a_refusal_is_shown_in_place() {
    let mut shown = Shown::new((80, 24), 3);
    shown.keys("je");
    shown.draw();
    shown.assert_has(&["dsl1.forward:", "Tab: delay queue rate queue.kind"]);
    shown.keys("ra");
    shown.key(KeyCode::Tab);
    shown.keys("5mbits");
    let Action::Ask(question) = shown.key(KeyCode::Enter) else { panic!("nothing is asked") };
    shown.asking.asks.send(question).unwrap();
    shown.answer();
    shown.draw();
    shown.assert_has(&["dsl1.forward: rate=5mbits", "rate: can't read \"5mbits\"; write it as 10 Mbit/s"]);
    // Corrected in the same line.
    shown.key(KeyCode::Backspace);
    let Action::Ask(question) = shown.key(KeyCode::Enter) else { panic!("nothing is asked") };
    shown.asking.asks.send(question).unwrap();
    shown.answer();
    assert!(shown.app.refresh);
    shown.look();
    shown.assert_has(&["dsl1.forward was changed"]);
}

#[test]
fn a_refusal_stays_although_its_line_was_left() {
    let mut shown = Shown::new((80, 24), 3);
    shown.keys("erate=5mbits");
    let Action::Ask(question) = shown.key(KeyCode::Enter) else { panic!("nothing is asked") };
    shown.key(KeyCode::Esc);
    shown.asking.asks.send(question).unwrap();
    shown.answer();
    shown.look();
    shown.assert_has(&["rate: can't read \"5mbits\"; write it as 10 Mbit/s"]);
    shown.keys("j");
    shown.draw();
    shown.assert_has(&["? help"]);
}

#[test]
fn both_directions_are_one_change() {
    let mut shown = Shown::new((80, 24), 3);
    shown.keys("b");
    shown.draw();
    shown.assert_has(&["dsl0:"]);
    shown.keys("5mbit");
    assert!(matches!(shown.key(KeyCode::Enter), Action::None));
    shown.draw();
    shown.assert_has(&["\"5mbit\": write setting=value, such as rate=5mbit"]);
    shown.key(KeyCode::Esc);
    assert!(matches!(shown.app.mode, Mode::Watch));
}

#[test]
fn leaving_the_own_run_is_a_question() {
    let mut shown = Shown::new((80, 24), 3);
    assert!(matches!(shown.key(KeyCode::Char('q')), Action::None));
    shown.draw();
    shown.assert_has(&["End the run? y ends it, d leaves the view only, else back"]);
    assert!(matches!(shown.key(KeyCode::Char('x')), Action::None));
    shown.keys("q");
    assert!(matches!(shown.key(KeyCode::Char('d')), Action::Detach));
    shown.app.mode = Mode::Leave;
    assert!(matches!(shown.key(KeyCode::Char('y')), Action::End));
    shown.app.owner = InstanceOwner::OtherProcess;
    shown.app.mode = Mode::Watch;
    assert!(matches!(shown.key(KeyCode::Char('q')), Action::End));
    let control = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    assert!(matches!(keys::key(&mut shown.app, control), Action::Interrupt));
}

#[test]
fn tab_goes_through_the_tables_that_have_rows() {
    let mut shown = Shown::new((100, 30), 3);
    let mut tabs = Vec::new();
    for _ in 0..4 {
        shown.key(KeyCode::Tab);
        shown.look();
        tabs.push(shown.app.tab);
        match shown.app.tab.kind {
            Some(Kind::Forwarder) => shown.assert_has(&["r1/nat", "██████░░░░  61.2 %", "306 ns"]),
            None => shown.assert_has(&["0:10  dsl1.forward: delay 80 ms", "1 of 3"]),
            _ => {}
        }
    }
    assert_eq!(tabs, [Tab::of(Kind::Port), Tab::of(Kind::Forwarder), Tab::EVENTS, Tab::LINKS]);
    shown.key(KeyCode::BackTab);
    assert_eq!(shown.app.tab, Tab::EVENTS);
}

#[test]
fn the_help_fits_every_screen() {
    for size in [(60, 15), (80, 24), (200, 50)] {
        let mut shown = Shown::new(size, 3);
        shown.keys("?");
        shown.draw();
        shown.assert_has(&["Tables", "Shift-Tab"]);
        (0..99).for_each(|_| drop(shown.key(KeyCode::Down)));
        shown.draw();
        shown.assert_has(&["max late"]);
        shown.keys("x");
        assert!(matches!(shown.app.mode, Mode::Watch));
    }
}

#[test]
fn very_many_links_are_counted_on_request() {
    let mut app = App::new(InstanceOwner::ThisProcess, "all".into(), None);
    app.take(Answer::Links(1_000_000));
    assert!(app.paused);
    let mut terminal = Terminal::new(TestBackend::new(120, 24)).unwrap();
    terminal.draw(|frame| draw(&mut app, Theme::new(true), frame)).unwrap();
    let text: String = terminal.backend().buffer().content().iter().map(|cell| cell.symbol()).collect();
    assert!(text.contains("1.00 M links: counting them takes the workers a moment"), "{text}");
    keys::key(&mut app, KeyEvent::new(KeyCode::Char(' '), KeyModifiers::NONE));
    assert!(app.refresh);
}

#[test]
fn without_colours_there_are_none() {
    let mut shown = Shown::new((80, 24), 4);
    shown.terminal.draw(|frame| draw(&mut shown.app, Theme::new(false), frame)).unwrap();
    let buffer = shown.terminal.backend().buffer();
    assert!(buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset));
    assert!(buffer.content().iter().any(|cell| cell.modifier.contains(Modifier::BOLD)));
}

/// Settings can be completed, also if the instance did not describe them at first.
#[test]
fn a_description_that_was_not_answered_is_asked_for_again() {
    let [looks, silences] = [0, 1].map(AtomicU64::new);
    let fake = Fake { links: 2, looks, faults: Vec::new(), asked: Arc::default(), silences };
    let Asking { asks, answers } = Asking::start(Box::new(fake)).unwrap();
    assert!(matches!(answers.recv(), Ok(Answer::Links(2))));
    let mut app = App::new(InstanceOwner::OtherProcess, "all".into(), None);
    asks.send(Ask::Look(app.wanted())).unwrap();
    drop(asks);
    assert!(matches!(answers.recv(), Ok(Answer::Looked(Ok(_)))));
    assert!(matches!(answers.recv(), Ok(Answer::Described(_))));
}

/// Where another run answers behind the same address, nothing of the one before is left.
#[test]
fn another_run_begins_anew() {
    let mut shown = Shown::new((80, 24), 2);
    let mut young = shown.app.look.clone().unwrap();
    young.summary.elapsed_ns = 5_000_000_000;
    shown.app.take(Answer::Looked(Ok(young)));
    assert!(shown.app.refresh && shown.app.log.is_empty() && shown.app.pace.is_none());
    assert_eq!(shown.app.wanted().after, 0);
    shown.look();
    shown.assert_has(&["0:10  dsl1.forward: delay 80 ms"]);
    assert_eq!(shown.app.log.len(), 3);
}

#[test]
fn a_panel_without_room_for_settings_keeps_to_its_place() {
    let mut shown = Shown::new((60, 15), 6);
    shown.keys("e");
    shown.draw();
    shown.assert_has(&["dsl0.forward:"]);
    assert!(!shown.has("then Tab"), "{}", shown.lines().join("\n"));
}

#[test]
fn an_instance_that_has_ended_is_gone() {
    let mut app = App::new(InstanceOwner::OtherProcess, "all".into(), None);
    app.take(Answer::Looked(Err(WatchError { reason: "no socket".into(), gone: false })));
    assert_eq!((app.trouble.as_deref(), app.gone.as_deref()), (Some("no socket"), None));
    app.take(Answer::Looked(Err(WatchError { reason: "no socket".into(), gone: true })));
    assert_eq!(app.gone.as_deref(), Some("no socket"));
    let wanted: ViewRequest = app.wanted();
    assert_eq!(wanted.kind, Some(Kind::Link));
}
