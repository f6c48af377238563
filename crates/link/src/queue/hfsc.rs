//! HFSC: a tree of classes with guarantees of delay and rate, shares of the rest, and upper limits, each
//! given by a service curve.

use super::classes::{ClassSet, Classed, Line, read_lines};
use super::curve::Service;
use super::hfsc_tree::{Curves, Plan, ROOT, Tree};
use crate::piece::{LineError, Piece};
use longwire_block::{Block, Dice, Grammar};
use longwire_settings::Settings;
use longwire_units::{Nanos, Rate};
use std::sync::Arc;

const CLASSES: Grammar = Grammar {
    wanted: "classes, one a line, such as \"web ls 3 Mbit/s if tcp port 80\"",
    form: None,
    read: |text, _| Ok(Arc::new(read(text).map_err(|error| error.to_string())?)),
    examples: &[
        "all ls 1 Mbit/s",
        "voice rt 2 Mbit/s 10 ms 64 kbit/s ls 64 kbit/s if less 300\nrest ls 1 Mbit/s",
        "a ls 3 Mbit/s ul 4 Mbit/s\na.x ls 2 Mbit/s if tcp and greater 600\n\
         a.y rt 0 5 ms 1 Mbit/s ls 1 Mbit/s limit 9 packets\n\
         b rt 500 kbit/s limit 20 kB if greater 1000",
        "a rt 1 Mbit/s 5 ms 500 kbit/s ls 3 Mbit/s queue red min 1 max 4 weight 0.5 if less 800\n\
         b ls 1 Mbit/s ul 2 Mbit/s queue head-drop limit 9 packets",
        "root ul 30 Mbit/s 1 ms 3 Mbit/s\nroot.a ls 9 Gbit/s 3 us 300 bit/s limit 30 ms if less 700\n\
         root.b ls 300 bit/s",
    ],
};

/// Hierarchical fair service curves.
///
/// - `rt`: the guarantee of a class, independent of others: a packet leaves at most the time of one longest
///   packet after its deadline, as long as the guarantees together fit the rate.
/// - `ls`: the proportion in which siblings share the rest. A class without it only gets its guarantee.
/// - `ul`: the limit of a class's share, whether or not others need the rest; guaranteed service counts
///   towards it, but is not limited by it. Unused credit is kept for 10 ms.
///
/// Virtual times have 128 bits and never overflow, real ones are nanoseconds; the book gives the precision of
/// slopes. Each packet costs O(depth · log n).
///
/// Beyond the paper: upper limits, and a sibling that becomes active joins halfway between the virtual times
/// of the sibling selected last and of the one furthest ahead by sharing alone: one that is ahead by its
/// guarantee delays no other.
pub type Hfsc = Classed<Tree>;

/// A tree of classes with guaranteed delay and rate, shares of the rest, and upper limits.
#[derive(Debug, Settings)]
#[settings(
    key = "queue",
    kind = "hfsc",
    source = "Stoica, Zhang & Ng, A Hierarchical Fair Service Curve Algorithm for Link-Sharing, Real-Time \
        and Priority Services (1997)",
    live
)]
pub struct HfscSettings {
    /// one class a line or a list of them: PARENT.NAME [rt CURVE] [ls CURVE] [ul CURVE] [limit L] [queue KIND
    /// [PARAMETER VALUE]...] [if EXPRESSION]; CURVE is a rate, or M1 D M2: rate M1 for the time D, then M2
    #[setting(grammar = CLASSES)]
    classes: Arc<ClassSet<Plan>>,
}

impl Block for Hfsc {
    type Settings = HfscSettings;

    fn build(settings: HfscSettings, dice: Dice) -> Self {
        Self::new(settings.classes, dice)
    }

    /// Applies other classes, which start fresh. Waiting packets are reassigned by the new conditions.
    fn change(&mut self, settings: HfscSettings) {
        self.wanted = settings.classes;
    }
}

fn read(text: &str) -> Result<ClassSet<Plan>, LineError> {
    let lines = read_lines(text, &["rt", "ls", "ul"], "\"web ls 3 Mbit/s if tcp port 80\"")?;
    let mut plan = Plan { classes: vec![Curves::default()], leaves: Vec::new() };
    let mut paths = vec!["root"];
    let mut leaves = Vec::new();
    for index in 0..lines.len() {
        let line = &lines[index];
        let path = line.name.text;
        let curves = curves(line)?;
        if path == "root" {
            plan.classes[ROOT].upper = root(line, curves, index)?;
            continue;
        }
        let path = path.strip_prefix("root.").unwrap_or(path);
        if paths.contains(&path) {
            return Err(line.name.found("give it another name: one before has this one"));
        }
        let parent = match path.rsplit_once('.') {
            None => ROOT,
            Some((parent, _)) => paths
                .iter()
                .position(|known| *known == parent)
                .ok_or_else(|| line.name.found(format!("write a line for \"{parent}\" before it")))?,
        };
        let own = |line: &Line<'_>| {
            let own = line.name.text;
            own.strip_prefix("root.").unwrap_or(own).rsplit_once('.').map(|(parent, _)| parent) == Some(path)
        };
        if lines.iter().any(own) {
            line.holds_no_packets()?;
            if curves.share.is_none() || curves.real_time.is_some() {
                return Err(line.name.found("give it ls and no rt: there are classes below it"));
            }
        } else {
            plan.leaves.push(plan.classes.len());
            leaves.push(index);
        }
        paths.push(path);
        plan.classes.push(Curves { parent, ..curves });
    }
    let holding = lines.into_iter().enumerate().filter(|(index, _)| leaves.contains(index));
    ClassSet::new(holding.map(|(_, line)| line).collect(), plan)
}

/// The upper limit of the whole link.
fn root(line: &Line<'_>, curves: Curves, index: usize) -> Result<Option<Service>, LineError> {
    line.holds_no_packets()?;
    if index > 0 || curves.share.is_some() || curves.real_time.is_some() {
        return Err(line.name.found("write root first, and nothing but ul: it is the link itself"));
    }
    Ok(curves.upper)
}

fn curves(line: &Line<'_>) -> Result<Curves, LineError> {
    let mut curves = Curves::default();
    for &(word, piece) in &line.settings {
        let (first, knee, second) = curve(piece)?;
        let (curve, may_pause) = match word {
            "rt" => (&mut curves.real_time, first.0 > 0 || second.0 > 0),
            "ls" => (&mut curves.share, first.0 > 0 && second.0 > 0),
            _ => (&mut curves.upper, first.0 > 0 && second.0 > 0),
        };
        if !may_pause {
            return Err(piece.found("write rates above 0: it would never send"));
        }
        *curve = Some(Service::new(first, knee, second));
    }
    if line.name.text != "root" && curves.share.is_none() {
        if curves.real_time.is_none() {
            return Err(line.name.found("give it rt, ls or both, such as \"ls 1 Mbit/s\""));
        }
        if curves.upper.is_some() {
            return Err(line.name.found("give it ls too, or leave out ul: it limits what is shared"));
        }
    }
    Ok(curves)
}

/// Parses a rate, or a rate, a time and a rate.
fn curve(piece: Piece<'_>) -> Result<(Rate, Nanos, Rate), LineError> {
    let rate = |piece: Piece<'_>| match piece.parse::<Rate>()? {
        Rate::UNLIMITED => Err(piece.found("write a rate up to 400 Gbit/s")),
        rate => Ok(rate),
    };
    match quantities(piece)[..] {
        [only] => rate(only).map(|rate| (rate, Nanos::ZERO, rate)),
        [first, knee, second] => {
            let knee = knee.parse()?;
            Ok((rate(first)?, knee, rate(second)?))
        }
        _ => Err(piece.found("write a rate such as \"1 Mbit/s\", or \"2 Mbit/s 10 ms 1 Mbit/s\"")),
    }
}

/// Splits a text before each word that begins with a digit.
fn quantities(piece: Piece<'_>) -> Vec<Piece<'_>> {
    let text = piece.text;
    let begins = |&(at, c): &(usize, char)| {
        let before = text[..at].chars().next_back();
        c.is_ascii_digit() && before.is_none_or(char::is_whitespace)
    };
    let mut starts: Vec<usize> = text.char_indices().filter(begins).map(|(at, _)| at).collect();
    if starts.first() != Some(&0) && !text.is_empty() {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([text.len()]);
    starts.iter().zip(ends).map(|(&start, end)| piece.part(start, end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Discipline, Next, QueueContext, Waiting, WaitingList};
    use longwire_packet::Pool;
    use proptest::prelude::*;

    /// 8 Mbit/s is a byte per microsecond: of two packets of 1000 bytes the second may be sent after 1 ms. If
    /// it is taken out before, there is nothing to wait for.
    #[test]
    fn what_was_emptied_has_nothing_for_later() {
        let values = HfscSettings::read(&[("classes", "root ul 8 Mbit/s\na ls 1 Mbit/s")]).unwrap();
        let mut queue = Hfsc::build(values, Dice::named(1, "hfsc"));
        let (mut pool, mut books) = (Pool::new(1 << 20).unwrap(), <(Waiting, WaitingList)>::default());
        for _ in 0..2 {
            let handle = pool.insert(&[0; 996]).unwrap();
            pool.meta_mut(handle).set_counted(1000);
            queue.push(&mut context(&mut pool, &mut books, 0), handle);
        }
        let mut pop = |queue: &mut Hfsc, pool: &mut Pool, now| queue.pop(&mut context(pool, &mut books, now));
        assert!(matches!(pop(&mut queue, &mut pool, 0), Next::Packet(_)));
        assert_eq!(pop(&mut queue, &mut pool, 0), Next::Later(Nanos::from_millis(1)));
        assert!(!queue.drain(&mut pool).is_empty());
        assert_eq!(pop(&mut queue, &mut pool, 1_000_000), Next::Empty);
    }

    fn context<'a>(
        pool: &'a mut Pool,
        (waiting, books): &'a mut (Waiting, WaitingList),
        now: u64,
    ) -> QueueContext<'a> {
        QueueContext { pool, now: Nanos(now), rate: Rate::UNLIMITED, waiting, books, link: None }
    }

    proptest! {
        /// Whatever the text, it is read or refused.
        #[test]
        fn any_text_is_read_or_refused(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "a", "a.b", "root", "root.a", ".", "b", "rt", "ls", "ul", "if", "limit", "1 Mbit/s", "0",
                        "5 ms", "400 Gbit/s",
                    "300 bit/s", "9999999999 h", "10 packets", "udp", "not", "\n", "ä", "9ä", "\u{a0}", "#",
                ]),
                0..30,
            )
        ) {
            if let Ok(set) = read(&words.join(" ")) {
                prop_assert!(!set.plan.leaves.is_empty());
                prop_assert!(set.plan.classes.iter().skip(1).enumerate().all(|(n, class)| class.parent <= n));
            }
        }
    }

    #[test]
    fn names_make_the_tree() {
        let text = "root ul 10 Mbit/s\nroot.a ls 1 Mbit/s\na.x ls 1 Mbit/s 5ms 2Mbit/s if udp\n\
            root.a.y rt 0 1 ms 9 kbit/s\nb ls 5 Mbit/s";
        let set = read(text).unwrap();
        let parents: Vec<_> = set.plan.classes.iter().map(|class| class.parent).collect();
        assert_eq!((parents, &set.plan.leaves[..]), (vec![0, 0, 1, 1, 0], &[2, 3, 4][..]));
        let service =
            |first, knee, second| Some(Service::new(Rate(first), Nanos::from_millis(knee), Rate(second)));
        assert_eq!(set.plan.classes[0].upper, service(10_000_000, 0, 10_000_000));
        assert_eq!(set.plan.classes[2].share, service(1_000_000, 5, 2_000_000));
        assert_eq!(set.plan.classes[3].real_time, service(0, 1, 9_000));
    }

    #[test]
    fn errors_name_class_column_and_fix() {
        let table = [
            ("", "there is no class; write one a line, such as \"web ls 3 Mbit/s if tcp port 80\""),
            ("a", "class 1, column 1: found \"a\"; give it rt, ls or both"),
            ("a ls", "class 1, column 5: found nothing; write a rate such as"),
            ("a ls 1 Mbit", "\0"),
            ("a ls 1 Mbitt", "class 1, column 6: \"1 Mbitt\" has the unknown unit"),
            ("a ls 1 Mbit/s 10 ms", "class 1, column 6: found \"1 Mbit/s 10 ms\"; write a rate such as"),
            ("a ls 2 Mbit/s 10 sm 1 Mbit/s", "class 1, column 15: \"10 sm\" has"),
            ("a ls 2 Mbit/s 10 ms 0", "class 1, column 6: found \"2 Mbit/s 10 ms 0\"; write rates above 0"),
            ("a rt 0", "write rates above 0"),
            ("a ls unlimited", "class 1, column 6: found \"unlimited\"; write a rate up to 400 Gbit/s"),
            ("a ls fast", "class 1, column 6: \"fast\" does not begin with a number"),
            ("a rt 1 Mbit/s ul 2 Mbit/s", "give it ls too"),
            (
                "b ls 1 Mbit/s\na.x ls 1 Mbit/s",
                "class 2, column 1: found \"a.x\"; write a line for \"a\" before it",
            ),
            ("a ls 1 Mbit/s if udp\na.x ls 1 Mbit/s", "class 1, column 18: found \"udp\"; leave it out"),
            ("a ls 1 Mbit/s queue pie\na.x ls 1 Mbit/s", "class 1, column 21: found \"pie\"; leave it out"),
            (
                "a ls 1 Mbit/s rt 1 Mbit/s\na.x ls 1 Mbit/s",
                "class 1, column 1: found \"a\"; give it ls and no rt",
            ),
            (
                "a ls 1 Mbit/s\nroot.a ls 1 Mbit/s",
                "class 2, column 1: found \"root.a\"; give it another name",
            ),
            ("a ls 1 Mbit/s\nroot ul 1 Mbit/s", "class 2, column 1: found \"root\"; write root first"),
            ("root ls 1 Mbit/s", "nothing but ul"),
            ("root ul 1 Mbit/s", "every class has an \"if\""),
        ];
        for (text, wanted) in table {
            match read(text) {
                Ok(_) => assert_eq!(wanted, "\0", "{text}"),
                Err(error) => assert!(error.to_string().contains(wanted), "{text}: {error}"),
            }
        }
    }
}
