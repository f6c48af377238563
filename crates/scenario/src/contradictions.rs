//! Parameters of a link's block that contradict each other: valid, but probably mistakes. Scenarios, their
//! events and changes of a run are looked at alike.

use longwire_block::Value;
use longwire_block::change::Blocks;
use longwire_link::delay::before_queue;
use std::fmt;

/// Parameters that contradict each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// What they mean together.
    pub what: String,
    /// The fix.
    pub fix: &'static str,
}

impl fmt::Display for Contradiction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.what, self.fix)
    }
}

/// The contradictions in a link's blocks.
pub fn contradictions(blocks: &Blocks) -> Vec<Contradiction> {
    let mut found = Vec::new();
    let mut add = |what: String, fix| found.push(Contradiction { what, fix });
    if let [Some(Value::Time(delay)), Some(Value::Time(jitter))] =
        params(blocks, "delay", "jitter", ["delay", "jitter"])
        && jitter > delay
    {
        let what = format!("a delay of {delay} can't vary by {jitter}: what would be below 0 is 0");
        add(what, "make the delay longer than the jitter, unless that is what is meant");
    }
    if let [Some(Value::Integer(min)), Some(Value::Integer(max))] =
        params(blocks, "queue", "red", ["min", "max"])
        && min >= max
    {
        let what = "its queue's max is not above its min: all is dropped or nothing";
        add(what.into(), "make max two or three times min");
    }
    if let [Some(Value::Rate(rate)), Some(Value::Rate(peak))] =
        params(blocks, "rate", "token-bucket", ["rate", "peak"])
        && peak < rate
    {
        let what = format!("it never sends faster than its peak of {peak}, and the rate of {rate} is more");
        add(what, "make the peak higher than the rate");
    }
    if let [Some(Value::Integer(0)), Some(Value::Parsed(list))] =
        params(blocks, "loss", "pattern", ["every", "list"])
        && list.text.is_empty()
    {
        add("its pattern never drops anything".into(), "write every = 100, or list = \"3, 7\"");
    }
    if blocks.iter().any(|(spec, values)| spec.key == "delay" && before_queue(spec, values))
        && let [Some(Value::Choice(0)), _] = params(blocks, "reorder", "independent", ["past", "by"])
    {
        let what = "packets that overtake cut the delay behind the queue short, and there is none";
        add(what.into(), "write before = \"leaving\", or jitter with order = \"reorder\"");
    }
    found
}

/// Two parameters of the block for `key`, if it is of this kind.
pub(crate) fn params(blocks: &Blocks, key: &str, kind: &str, names: [&str; 2]) -> [Option<Value>; 2] {
    names.map(|name| {
        let (spec, values) = blocks.iter().find(|(spec, _)| spec.key == key && spec.kind == kind)?;
        Some(values.at(spec.place(name)?))
    })
}
