//! Texts of a router's processors in settings: clocks, costs, estimators.

use crate::estimate::Estimator;
use crate::model::Demand;
use longwire_settings::{Form, Grammar};
use longwire_units::Rate;
use std::sync::Arc;

/// A processor's clock in cycles per microsecond.
pub const CLOCK: Grammar = Grammar {
    wanted: "a clock such as \"600 MHz\"",
    read: |text, _| Ok(Arc::new(clock(text)?)),
    examples: &["600 MHz", "1 GHz", "2.4 GHz"],
    form: Some(Form { pattern: "^ *[0-9]+([.][0-9]{1,3})? *[MG]Hz *$", numbers: false }),
};

/// The rate of a router's ports.
pub const PORT_RATE: Grammar = Grammar {
    wanted: "a rate such as \"1 Gbit/s\"",
    read: |text, _| Ok(Arc::new(port_rate(text)?)),
    examples: &["10 Mbit/s", "1 Gbit/s"],
    form: Some(Form { pattern: ".", numbers: false }),
};

/// Cycles that a packet takes: a [`Demand`].
pub const CYCLES: Grammar = Grammar {
    wanted: "cycles such as 3000, \"1000 + 2/byte\", \"2400..3600\" or \"endless\"",
    read: |text, _| Ok(Arc::new(demand(text)?)),
    examples: &["3000", "1000 + 2/byte", "2400..3600", "endless"],
    form: Some(Form {
        pattern: "^ *(endless|[0-9_]+ *([.]{2} *[0-9_]+|[+] *[0-9_]+ */byte)?) *$",
        numbers: true,
    }),
};

/// A cost predictor: an [`Estimator`].
pub const ESTIMATOR: Grammar = Grammar {
    wanted: "an estimator such as \"ses 0.5\", \"ses-shift\", \"last\", \"mean\" or \"exact\"",
    read: |text, _| Ok(Arc::new(estimator(text)?)),
    examples: &["ses", "ses 0.25", "ses-shift", "last", "mean", "exact"],
    form: Some(Form {
        pattern: "^ *(ses|ses-shift|last|mean|exact|ses +(1([.]0{1,6})?|0?[.][0-9]{1,6})) *$",
        numbers: false,
    }),
};

fn clock(text: &str) -> Result<u32, String> {
    let wrong =
        || format!("\"{text}\" is not a clock; write one from 1 MHz to 1000 GHz, such as \"600 MHz\"");
    let text = text.trim();
    let (number, factor) = match (text.strip_suffix("MHz"), text.strip_suffix("GHz")) {
        (Some(number), _) => (number, 1),
        (_, Some(number)) => (number, 1000),
        _ => return Err(wrong()),
    };
    let (whole, fraction) = number.trim().split_once('.').unwrap_or((number.trim(), ""));
    // `parse` would take a sign.
    if !(whole.to_owned() + fraction).bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(wrong());
    }
    let whole: u32 = whole.parse().map_err(|_| wrong())?;
    let fraction = match (fraction.len(), factor) {
        (0, _) => 0,
        (digits @ 1..=3, 1000) => {
            fraction.parse::<u32>().map_err(|_| wrong())? * 10u32.pow(3 - digits as u32)
        }
        _ => return Err(wrong()),
    };
    let clock = whole.checked_mul(factor).and_then(|clock| clock.checked_add(fraction));
    clock.filter(|clock| (1..=1_000_000).contains(clock)).ok_or_else(wrong)
}

fn port_rate(text: &str) -> Result<Rate, String> {
    match text.parse::<Rate>() {
        Ok(Rate::STALLED) => Err(
            "a port that sends at rate 0 sends nothing; for an outage give rate = \"0\" to a link behind it"
                .into(),
        ),
        Ok(rate) => Ok(rate),
        Err(error) => Err(error.to_string().replace(", 0 for an outage, or", " or")),
    }
}

/// Cycles per packet, plus cycles per byte, drawn from a range, or without end.
fn demand(text: &str) -> Result<Demand, String> {
    let wrong = || {
        format!(
            "\"{text}\" is not a number of cycles; write {}",
            CYCLES.wanted.trim_start_matches("cycles such as ")
        )
    };
    let number = |text: &str| {
        let digits = Some(text.trim().replace('_', "")).filter(|text| !text.starts_with('+'));
        digits.and_then(|digits| digits.parse::<u64>().ok()).ok_or_else(wrong)
    };
    let demand = if text.trim() == "endless" {
        Demand::Endless
    } else if let Some((from, to)) = text.split_once("..") {
        let (from, to) = (number(from)?, number(to)?);
        if from > to {
            return Err(format!("\"{text}\" is empty: write the fewest first"));
        }
        Demand::Drawn { from, to }
    } else if let Some((base, per_byte)) = text.split_once('+') {
        let per_byte = per_byte.trim().strip_suffix("/byte").ok_or_else(wrong)?;
        Demand::BySize { base: number(base)?, per_byte: number(per_byte)? }
    } else {
        Demand::PerPacket(number(text)?)
    };
    Ok(demand)
}

/// `ses`, `ses 0.25`, `ses-shift`, `last`, `mean`, `exact`.
fn estimator(text: &str) -> Result<Estimator, String> {
    let text = text.trim();
    if let Some(alpha) = text.strip_prefix("ses ") {
        return alpha_of(alpha.trim()).map(|alpha| Estimator::Smoothed { alpha });
    }
    let found = Estimator::ALL.iter().find(|(name, _)| *name == text);
    found.map(|(_, estimator)| *estimator).ok_or_else(|| {
        let names: Vec<_> = Estimator::ALL.iter().map(|(name, _)| *name).collect();
        format!("there is no estimator \"{text}\"; give one of {}, or \"ses 0.25\"", names.join(", "))
    })
}

/// α above 0 and up to 1 with up to six decimals (`.5` is `0.5`), in 1/65 536, rounded, at least 1.
fn alpha_of(text: &str) -> Result<u32, String> {
    let wanted = "above 0 and up to 1, such as \"ses 0.5\"";
    let unread = || {
        format!(
            "α = \"{text}\" can't be read as a number of at most six digits after the point; write one \
             {wanted}"
        )
    };
    let out_of_range = || format!("α = \"{text}\" is out of range; write one {wanted}");
    let size = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = match size.split_once('.') {
        Some(("", fraction)) => ("0", fraction),
        Some(parts) => parts,
        None => (size, "0"),
    };
    let are_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !are_digits(whole) || !are_digits(fraction) || fraction.len() > 6 {
        return Err(unread());
    }
    // Too many digits are too large a number.
    let whole: u64 = whole.parse().unwrap_or(u64::MAX);
    let fraction: u64 = format!("{fraction:0<6}").parse().map_err(|_| unread())?;
    let millionths = whole.saturating_mul(1_000_000).saturating_add(fraction);
    if size != text || millionths == 0 || millionths > 1_000_000 {
        return Err(out_of_range());
    }
    Ok((((millionths << 16) + 500_000) / 1_000_000).max(1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_read() {
        for (text, mhz) in [("600 MHz", 600), ("1GHz", 1000), ("2.4 GHz", 2400), ("1.234 GHz", 1234)] {
            assert_eq!(clock(text), Ok(mhz), "{text}");
        }
        for wrong in [
            "600",
            "0 MHz",
            "1.5 MHz",
            "1.2345 GHz",
            "-1 GHz",
            "2000 GHz",
            "5000000 GHz",
            "GHz",
            "1.-5 GHz",
            "1.+5 GHz",
            "+1 GHz",
        ] {
            assert!(clock(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn cycles_are_read() {
        for (text, demand) in [
            ("3000", Demand::PerPacket(3000)),
            ("1_000 + 2/byte", Demand::BySize { base: 1000, per_byte: 2 }),
            ("2400..3600", Demand::Drawn { from: 2400, to: 3600 }),
            ("endless", Demand::Endless),
        ] {
            assert_eq!(super::demand(text), Ok(demand));
        }
        for wrong in ["", "-1", "+1", "1 + +2/byte", "5..2", "1 + 2", "1 + 2/B", "99999999999999999999"] {
            assert!(demand(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn estimators_are_read() {
        for (text, alpha) in [
            ("ses 0.5", 1 << 15),
            ("ses .5", 1 << 15),
            ("ses 0.25", 1 << 14),
            ("ses 1", 1 << 16),
            ("ses 0.000001", 1),
        ] {
            assert_eq!(estimator(text), Ok(Estimator::Smoothed { alpha }));
        }
        assert_eq!(estimator("ses-shift"), Ok(Estimator::Shift));
        for (wrong, why) in [
            ("ses 0", "is out of range"),
            ("ses .0", "is out of range"),
            ("ses 1.1", "is out of range"),
            ("ses 100000000000000000000", "is out of range"),
            ("ses -1", "α = \"-1\" is out of range"),
            ("ses +0.5", "can't be read"),
            ("ses 0.+5", "can't be read"),
            ("ses 1.", "can't be read"),
            ("ses .", "can't be read"),
            ("ses x", "α = \"x\" can't be read as a number"),
            ("ses 0,5", "can't be read"),
            ("ses 0.1234567", "at most six digits"),
            ("median", "no estimator \"median\""),
        ] {
            let told = estimator(wrong).unwrap_err();
            assert!(told.contains(why), "{wrong}: {told}");
        }
    }

    /// Editors check texts by patterns: the names of estimators stand in one.
    #[test]
    fn the_pattern_has_all_estimators() {
        let names: Vec<_> = Estimator::ALL.iter().map(|(name, _)| *name).collect();
        let pattern = ESTIMATOR.form.unwrap().pattern;
        assert!(pattern.contains(&format!("({}|", names.join("|"))), "{pattern}: {names:?}");
    }
}
