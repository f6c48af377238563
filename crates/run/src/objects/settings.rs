//! Ramps, refusals and quantities of settings.

use longwire_block::change::Ramp;
use longwire_block::{Param, ParamKind};
use longwire_control::{Bounds, Quantity, SetError, Settable};
use longwire_engine::RemoteError;
use longwire_scenario::KeyFault;
use longwire_units::Nanos;
use std::collections::BTreeMap;
use std::path::Path;

/// The settings that turn the others into a ramp, and set the interval of its steps.
const RAMP: &str = "ramp";
const STEP: &str = "ramp.step";
/// Most steps of a ramp, as of a scenario's.
const MOST_STEPS: u64 = 1_000_000;

/// The settings of an object, as text.
pub type Settings = BTreeMap<String, String>;

/// A pair of setting and text.
pub type SettingPair = (String, String);

/// Splits pairs of setting and text into the ramp and the others.
pub(crate) fn ramp_of(pairs: &[SettingPair]) -> Result<(Option<Ramp>, Vec<&SettingPair>), SetError> {
    let time = |name: &str| {
        let Some((_, text)) = pairs.iter().find(|(key, _)| key == name) else { return Ok(None) };
        let wrong = |reason: String| SetError::Value { key: name.into(), reason };
        match text.parse::<Nanos>() {
            Ok(Nanos::ZERO) => Err(wrong("it must be longer than 0, such as 5s".into())),
            Ok(time) => Ok(Some(time)),
            Err(error) => Err(wrong(error.to_string())),
        }
    };
    let wrong = |reason: String| Err(SetError::Value { key: STEP.into(), reason });
    let ramp = match (time(RAMP)?, time(STEP)?) {
        (None, None) => None,
        (None, Some(_)) => return wrong("a step needs a ramp; add one, such as 5s".into()),
        (Some(over), None) => Some(Ramp::new(over)),
        (Some(over), Some(step)) => Some(Ramp { over, step }),
    };
    if let Some(ramp) = ramp.filter(|ramp| ramp.steps() > MOST_STEPS) {
        return wrong(format!("{} steps are more than {MOST_STEPS}; make them longer", ramp.steps()));
    }
    let others = pairs.iter().filter(|(key, _)| key != RAMP && key != STEP).collect();
    Ok((ramp, others))
}

/// What `read` makes of pairs of setting and text, or its faults.
pub(super) fn keyed<T>(
    pairs: &[&SettingPair],
    read: impl FnOnce(&[(&str, &str)]) -> Result<T, Vec<KeyFault>>,
) -> Result<T, SetError> {
    let texts: Vec<_> = pairs.iter().map(|(key, text)| (key.as_str(), text.as_str())).collect();
    let wrong = |fault: KeyFault| SetError::Value { reason: fault.to_string(), key: fault.key };
    read(&texts).map_err(|faults| SetError::of_all(faults.into_iter().map(wrong).collect()))
}

/// The refusal of a change, from the error of its run.
pub(crate) fn refusal(error: RemoteError, ramp: Option<Ramp>) -> SetError {
    match (error, ramp) {
        (unknown @ (RemoteError::Gone | RemoteError::Late), _) => SetError::Unavailable(unknown.to_string()),
        (RemoteError::Refused(reason), Some(_)) => SetError::Value { key: RAMP.into(), reason },
        (RemoteError::Refused(reason), None) => SetError::Refused(reason),
    }
}

/// The quantity of a parameter's values.
pub(super) fn quantity(param: &Param) -> Quantity {
    match param.kind {
        ParamKind::Rate => Quantity::Rate,
        ParamKind::Time { min, max } => Quantity::Time(Bounds { least: min.0, most: max.0 }),
        ParamKind::Probability => Quantity::Share,
        ParamKind::Integer { min, max } => Quantity::Integer(Bounds { least: min, most: max }),
        ParamKind::Decimal { min, max } => Quantity::Decimal(Bounds { least: min, most: max }),
        ParamKind::Size { min, max } => Quantity::Size(Bounds { least: min.0, most: max.0 }),
        ParamKind::Limit => Quantity::Limit,
        ParamKind::Choice(words) => Quantity::Words(words.to_vec()),
        ParamKind::Parsed(_) => Quantity::Other,
    }
}

/// The settings of a ramp, as a change may name them.
pub(super) fn of_ramps() -> [Settable; 2] {
    let setting = |key: &str, help| {
        let over = Quantity::Time(Bounds { least: 1, most: u64::MAX });
        Settable::new(key, help, "a time such as \"5 s\"".into(), over)
    };
    [
        setting(RAMP, "moves the other values to their targets step by step, over this time"),
        setting(STEP, "the interval of steps; default: 100 ms, or a fiftieth of the ramp if that is less"),
    ]
}

/// The fault of a change, marked if one of its values names a file, which is in `folder` unless the name is
/// absolute.
pub(crate) fn mark_files(fault: SetError, pairs: &[SettingPair], folder: &Path) -> SetError {
    let is_file = |text: &str| [text, text.trim()].iter().any(|name| folder.join(name).is_file());
    match fault {
        SetError::Value { .. } | SetError::Several(_) if pairs.iter().any(|(_, text)| is_file(text)) => {
            SetError::OfFile(Box::new(fault))
        }
        fault => fault,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_are_read_and_taken_out() {
        let of = |pairs: &[(&str, &str)]| {
            let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
            ramp_of(&pairs).map(|(ramp, others)| (ramp, others.len())).map_err(|error| error.to_string())
        };
        let ramp = |over, step| Some(Ramp { over: Nanos::from_millis(over), step: Nanos::from_millis(step) });
        assert_eq!(of(&[("rate", "1mbit")]), Ok((None, 1)));
        assert_eq!(of(&[("rate", "1mbit"), ("ramp", "10 s")]), Ok((ramp(10_000, 100), 1)));
        assert_eq!(
            of(&[("ramp", "10 s"), ("ramp.step", "2s"), ("delay", "1ms")]),
            Ok((ramp(10_000, 2000), 1))
        );
        assert!(of(&[("ramp", "0s")]).unwrap_err().starts_with("ramp: it must be longer than 0"));
        assert!(of(&[("ramp.step", "1s")]).unwrap_err().starts_with("ramp.step: a step needs a ramp"));
        assert!(of(&[("ramp", "2000 s"), ("ramp.step", "1ms")]).unwrap_err().contains("2000000 steps"));
    }
}
