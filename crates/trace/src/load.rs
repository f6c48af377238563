//! Loads a trace from a text or a file, in any format.

use crate::list::{self, LinkState, Quantity};
use crate::shipped::{self, ShippedTrace};
use crate::theaterq::{self, Entry};
use crate::{MAX_FILE, Opportunities, Rates, Series, Steps, TraceError};
use longwire_settings::plain_file;
use longwire_units::{Nanos, Probability, Rate};
use std::any::{Any, TypeId};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::SystemTime;

/// Reads rates from `text`, or from the file of that name in the folder `base`: a mahimahi trace, a TheaterQ
/// trace, or a list of times and rates. A name such as `profile:lte-down` means a [shipped] trace.
///
/// # Errors
/// Names the line that can't be read, and says how to fix it.
pub fn rates(text: &str, base: &Path) -> Result<Arc<Rates>, TraceError> {
    if text.trim().starts_with(shipped::PREFIX) {
        return named(text.trim());
    }
    load::<Rate, Rates>(text, base, |text| match form(text) {
        Form::Opportunities => Opportunities::parse(text).map(Rates::Opportunities),
        Form::Entries => theaterq::series(text, |entry| entry.rate).map(Steps::new).map(Rates::Steps),
        Form::List => list::parse(text).map(Steps::new).map(Rates::Steps),
    })
}

/// Reads delays from `text`, or from the file of that name in the folder `base`: a TheaterQ trace, or a list
/// of times and delays.
///
/// # Errors
/// As [`rates`].
pub fn delays(text: &str, base: &Path) -> Result<Arc<Series<Nanos>>, TraceError> {
    load::<Nanos, _>(text, base, |text| column(text, "delays", |entry| entry.latency))
}

/// Reads loss probabilities from `text`, or from the file of that name in the folder `base`: a TheaterQ
/// trace, or a list of times and probabilities.
///
/// # Errors
/// As [`rates`].
pub fn losses(text: &str, base: &Path) -> Result<Arc<Series<Probability>>, TraceError> {
    load::<Probability, _>(text, base, |text| column(text, "losses", |entry| entry.loss))
}

/// Reads states of a link from `text`, or from the file of that name in the folder `base`: a list of times
/// and `up` or `down`.
///
/// # Errors
/// As [`rates`].
pub fn states(text: &str, base: &Path) -> Result<Arc<Series<LinkState>>, TraceError> {
    load::<LinkState, _>(text, base, list::parse)
}

/// The shipped trace of that name.
fn named(name: &str) -> Result<Arc<Rates>, TraceError> {
    let Some(shipped) = ShippedTrace::named(name) else {
        let known: Vec<&str> = shipped::ALL.iter().map(|shipped| shipped.name).collect();
        let what = format!(
            "there is no trace \"{}\"; {} comes before {}",
            name.escape_debug(),
            shipped::PREFIX,
            known.join(", ")
        );
        return Err(TraceError::whole(what));
    };
    let known = (PathBuf::from(name), TypeId::of::<Rates>());
    let state = (None, 0);
    if let Some(shared) = recall::<Rates>(&known, state) {
        return Ok(shared);
    }
    let trace = Arc::new(Rates::Opportunities(Opportunities::parse(&shipped.text())?));
    remember(known, state, &trace);
    Ok(trace)
}

/// Parses values that are `of` each entry of a TheaterQ trace, or a list of them.
fn column<T: Quantity>(text: &str, values: &str, of: fn(&Entry) -> T) -> Result<Series<T>, TraceError> {
    match form(text) {
        Form::Opportunities => Err(TraceError::whole(format!(
            "one number a line is a trace of delivery opportunities, which says rates and no {values}"
        ))),
        Form::Entries => theaterq::series(text, of),
        Form::List => list::parse(text),
    }
}

/// The formats of traces.
enum Form {
    Opportunities,
    Entries,
    List,
}

/// Detects the format by the first line that begins with a digit.
fn form(text: &str) -> Form {
    let is_data = |line: &&str| line.starts_with(|first: char| first.is_ascii_digit());
    match text.lines().map(str::trim).find(is_data) {
        Some(line) if line.bytes().all(|byte| byte.is_ascii_digit()) => Form::Opportunities,
        Some(line) if theaterq::is_entry(line) => Form::Entries,
        _ => Form::List,
    }
}

/// Parses `text` itself, or the file that it names.
fn load<Q: Quantity, T: Send + Sync + 'static>(
    text: &str,
    base: &Path,
    parse: fn(&str) -> Result<T, TraceError>,
) -> Result<Arc<T>, TraceError> {
    let path = base.join(text.trim());
    if is_inline::<Q>(text, &path) {
        return parse(&text.replace(';', "\n")).map(Arc::new);
    }
    let failed = |why: &str| TraceError::File { path: path.clone(), why: why.into(), example: Q::EXAMPLE };
    let about = fs::metadata(&path).map_err(|error| failed(&error.to_string()))?;
    let state = (about.modified().ok(), about.len());
    let known = (fs::canonicalize(&path).unwrap_or_else(|_| path.clone()), TypeId::of::<T>());
    if let Some(shared) = recall::<T>(&known, state) {
        return Ok(shared);
    }
    let content = plain_file::text_of(&path, MAX_FILE).map_err(|error| failed(&error.to_string()))?;
    let wrong = |source| TraceError::In { path: path.clone(), source: Box::new(source) };
    let trace = Arc::new(parse(&content).map_err(wrong)?);
    remember(known, state, &trace);
    Ok(trace)
}

/// Whether `text` is a trace rather than the name of one: it has several lines or parts, or is an entry of a
/// list, or resembles a mistyped one.
fn is_inline<Q: Quantity>(text: &str, path: &Path) -> bool {
    let number_and_more =
        text.trim_start().starts_with(|first: char| first.is_ascii_digit()) && text.trim().contains(' ');
    text.contains(['\n', ';']) || list::is_entry::<Q>(text) || number_and_more && !path.exists()
}

/// A file, and the type of the value made from it.
type CacheKey = (PathBuf, TypeId);
/// Modification time and length of a file.
type FileVersion = (Option<SystemTime>, u64);
type Cache = BTreeMap<CacheKey, (FileVersion, Weak<dyn Any + Send + Sync>)>;

/// Traces that were read and are still in use: thousands of links may name the same file.
static SHELF: Mutex<Cache> = Mutex::new(BTreeMap::new());

fn recall<T: Send + Sync + 'static>(known: &CacheKey, state: FileVersion) -> Option<Arc<T>> {
    let shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    let (then, trace) = shelf.get(known)?;
    if *then == state { trace.upgrade()?.downcast().ok() } else { None }
}

fn remember<T: Send + Sync + 'static>(known: CacheKey, state: FileVersion, trace: &Arc<T>) {
    let mut shelf = SHELF.lock().unwrap_or_else(PoisonError::into_inner);
    shelf.retain(|_, (_, trace)| trace.strong_count() > 0);
    let trace: Arc<dyn Any + Send + Sync> = Arc::<T>::clone(trace);
    shelf.insert(known, (state, Arc::downgrade(&trace)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tempfile::{TempDir, tempdir};

    /// Writes a file in a folder, and returns the folder's path.
    fn file<'f>(folder: &'f TempDir, name: &str, text: &str) -> &'f Path {
        fs::write(folder.path().join(name), text).unwrap();
        folder.path()
    }

    #[test]
    fn tells_the_forms_apart() {
        let folder = tempdir().unwrap();
        let shape = |text: &str| {
            let read = rates("t", file(&folder, "t", text)).unwrap();
            match &*read {
                Rates::Opportunities(trace) => format!("{} opportunities", trace.times().len()),
                Rates::Steps(steps) => format!("{} steps, {}", steps.series.steps().len(), read.mean()),
            }
        };
        assert_eq!(shape("0\n5\n10\n"), "3 opportunities");
        assert_eq!(
            shape("keep,latency,rate,loss,limit\n10,5,1000,0,9\n10,5,3000,0,9\n"),
            "2 steps, 2 kbit/s"
        );
        assert_eq!(shape("# rates\n0,1000\n1,3000\n"), "2 steps, 2 kbit/s");
        assert_eq!(shape("0 s 1 kbit/s\n1 s 3 kbit/s\n2 s end\n"), "2 steps, 2 kbit/s");
    }

    #[test]
    fn a_column_of_a_theaterq_trace_for_each_kind() {
        let folder = tempdir().unwrap();
        let base = file(&folder, "t.csv", "10,5,1000,4294967295,9\n10,6,1000,0,9\n");
        assert_eq!(delays("t.csv", base).unwrap().steps()[1], (Nanos(10_000), Nanos(6)));
        assert_eq!(losses("t.csv", base).unwrap().steps()[0], (Nanos(0), Probability::ONE));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let folder = tempdir().unwrap();
        let base = file(&folder, "t.csv", "\u{feff}10,5,1000,0,9\n10,6,1000,0,9\n");
        assert_eq!(delays("t.csv", base).unwrap().steps(), [(Nanos(0), Nanos(5)), (Nanos(10_000), Nanos(6))]);
        let base = file(&folder, "m.up", "\u{feff}1\n5\n");
        assert_eq!(rates("m.up", base).unwrap().mean(), Rate(4_812_800));
    }

    #[test]
    fn a_text_can_be_the_trace() {
        let none = Path::new("/nowhere");
        for text in ["0 s 1 kbit/s; 1 s 3 kbit/s", "0 s 1 kbit/s\n1 s 3 kbit/s", "0,1000;1,3000"] {
            assert_eq!(rates(text, none).unwrap().mean(), Rate(2000), "{text}");
        }
        assert_eq!(rates("0 s 5 kbit/s", none).unwrap().mean(), Rate(5000));
        assert!(matches!(&*rates("0;3;7", none).unwrap(), Rates::Opportunities(_)));
        assert_eq!(delays("0 s 20 ms", none).unwrap().steps(), [(Nanos(0), Nanos::from_millis(20))]);
        assert!(losses("0 s 0 %; 5 s 2 %; 6 s end", none).is_ok());
        let entries = delays("1000,5,1000,0,0; 1000,6,1000,0,0", none).unwrap();
        assert_eq!(entries.steps(), [(Nanos(0), Nanos(5)), (Nanos(1_000_000), Nanos(6))]);
    }

    #[test]
    fn a_name_can_mean_a_shipped_trace() {
        let none = Path::new("/nowhere");
        let one = rates("profile:3g-up", none).unwrap();
        assert!(Arc::ptr_eq(&one, &rates(" profile:3g-up", none).unwrap()));
        let error = rates("profile:3g", none).unwrap_err().to_string();
        assert!(error.contains("\"profile:3g\"") && error.contains("3g-down, 3g-up, lte-down"), "{error}");
        assert!(delays("profile:3g-up", none).is_err());
    }

    #[test]
    fn says_what_is_wrong_and_where() {
        let folder = tempdir().unwrap();
        let base = file(&folder, "5g.up", "1\n2\nx\n");
        let error = |text: &str| rates(text, base).unwrap_err().to_string();
        assert!(error("5g.up").contains("5g.up: line 3: \"x\""));
        assert!(error("6g.up").contains("6g.up: No such file"), "{}", error("6g.up"));
        assert!(error("6g.up").contains("0 s 10 Mbit/s"));
        assert!(error("0 s 10 Mbitt").contains("unknown unit"));
        assert!(error(".").contains("not a plain file"));
        let error = delays("5g.up", base).unwrap_err().to_string();
        assert!(error.contains("says rates and no delays"), "{error}");
        fs::write(base.join("binary"), [0xff, 0xfe]).unwrap();
        assert!(rates("binary", base).unwrap_err().to_string().contains("not text"));
    }

    #[test]
    fn a_file_is_read_once_and_again_when_it_has_changed() {
        let folder = tempdir().unwrap();
        let base = file(&folder, "t", "1\n2\n");
        let one = rates("t", base).unwrap();
        assert!(Arc::ptr_eq(&one, &rates("./t", base).unwrap()));
        file(&folder, "t", "1\n2\n30\n");
        assert!(!Arc::ptr_eq(&one, &rates("t", base).unwrap()));
    }

    proptest! {
        #[test]
        fn hostile_text_never_panics(text in "(\\PC|[0-9]{1,20}|[,.\n]| s | Mbit/s|end){0,80}") {
            let text = format!("{text}\n");
            let base = Path::new("/nowhere");
            let _ = (rates(&text, base), delays(&text, base), losses(&text, base));
        }
    }
}
