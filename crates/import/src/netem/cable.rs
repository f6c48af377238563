//! netem on a cable, as set by containerlab's command `tools netem`.

use super::Netem;
use super::loss::Loss;
use crate::quantity::{Share, time, whole};
use crate::stage::Stage;
use crate::{ImportError, Notes, Result};
use longwire_units::Nanos;

/// Containerlab's limit in packets (internal/tc/tc.go, `SetImpairments`).
pub(super) const LIMIT: u64 = 10_000;

/// The link of a cable with these options: delay and jitter are durations, loss and corruption per cent, the
/// rate is in kbit/s.
pub(crate) fn stage(line: usize, given: &[(String, String)], notes: &mut Notes) -> Result<Stage> {
    let mut netem = Netem { line, on_cable: true, ..Netem::default() };
    for (key, value) in given {
        netem.set(key, value, notes)?;
    }
    if netem.delay.is_none() && netem.jitter > Nanos::ZERO {
        let option = format!("jitter {}", netem.jitter);
        notes.add(line, &option, "without a delay it has no effect there, nor here");
    }
    let mut stage = netem.stages(notes)?.swap_remove(0);
    stage.comment.clear();
    Ok(stage)
}

impl Netem {
    /// Sets an option of the command. Zero is none.
    fn set(&mut self, key: &str, value: &str, notes: &mut Notes) -> Result<()> {
        let line = self.line;
        let bad = |example: &str| {
            let what = format!("{key} can't be \"{value}\"");
            ImportError::new(line, what, format!("write {key} {example}"))
        };
        let duration = || time(value, 1_000_000).ok_or_else(|| bad("50ms"));
        let share = || Share::percent(value).ok_or_else(|| bad("10"));
        match key {
            "delay" => self.delay = Some(duration()?).filter(|delay| *delay > Nanos::ZERO),
            "jitter" => self.jitter = duration()?,
            "loss" => {
                let loss = Some(share()?).filter(|share| *share > Share::ZERO);
                self.loss = loss.map(|share| Loss::Random(share, Share::ZERO));
            }
            "corruption" => {
                let corruption = Some(share()?).filter(|share| *share > Share::ZERO);
                self.corrupt = corruption.map(|share| (share, Share::ZERO));
            }
            "rate" => {
                let kbits = whole(value).ok_or_else(|| bad("1000"))?;
                let bits = kbits.checked_mul(1000).ok_or_else(|| bad("1000"))?;
                self.rate = Some(bits).filter(|bits| *bits > 0);
            }
            _ => notes.add(line, &format!("{key} {value}"), "it is not an impairment that is known here"),
        }
        Ok(())
    }
}
