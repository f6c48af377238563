//! netem's models of loss.

use super::pair;
use crate::Result;
use crate::quantity::Share;
use crate::stage::Stage;
use crate::words::Words;

/// A loss with its parameters.
#[derive(Debug)]
pub(super) enum Loss {
    Random(Share, Share),
    State([Share; 5]),
    Gilbert([Share; 4]),
}

/// Parses the options after `loss`.
pub(super) fn loss(words: &mut Words<'_>) -> Result<Loss> {
    match words.rest.first().map(String::as_str) {
        Some("state") => {
            words.next();
            words.skip("p13");
            let p13 = words.value("loss state", "1% 25%", Share::percent)?;
            let mut p = [p13, p13.rest(), Share::ZERO, Share::ALL, Share::ZERO];
            for (at, label) in [(1, "p31"), (2, "p32"), (3, "p23"), (4, "p14")] {
                words.skip(label);
                p[at] = words.optional("loss state", p[at], Share::percent)?;
            }
            Ok(Loss::State(p))
        }
        Some("gemodel") => {
            words.next();
            words.skip("p");
            let p = words.value("loss gemodel", "1% 25%", Share::percent)?;
            let mut all = [p, p.rest(), Share::ALL, Share::ZERO];
            for (at, label) in [(1, "r"), (2, "1-h"), (3, "1-k")] {
                words.skip(label);
                all[at] = words.optional("loss gemodel", all[at], Share::percent)?;
            }
            // netem's values are shares lost in a state, Longwire's shares kept.
            Ok(Loss::Gilbert([all[0], all[1], all[2].rest(), all[3].rest()]))
        }
        Some("random") => {
            words.next();
            pair("loss random", words).map(|(share, correlation)| Loss::Random(share, correlation))
        }
        _ => pair("loss", words).map(|(share, correlation)| Loss::Random(share, correlation)),
    }
}

/// Writes a model with states.
pub(super) fn markov(
    stage: &mut Stage,
    kind: &str,
    names: &[&'static str],
    shares: &[Share],
    more: &[(&'static str, String)],
) {
    let shares = names.iter().zip(shares).map(|(name, share)| (*name, share.text()));
    let parameters: Vec<_> = shares.chain(more.iter().cloned()).collect();
    stage.block("loss", kind, &parameters);
}
