//! An error with its causes, as text.

use longwire_report::output;

/// An error and its causes in one line: see [`output::chain`].
pub fn chain(error: &anyhow::Error) -> String {
    output::chain(error.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn causes_appear_once() {
        let error =
            anyhow!("no such file").context("x.toml: no such file; name another").context("can't load");
        assert_eq!(chain(&error), "can't load: x.toml: no such file; name another");
    }

    #[test]
    fn an_error_can_not_steer_the_terminal() {
        assert_eq!(chain(&anyhow!("no link \"\u{1b}[2J\"")), "no link \"\\u001b[2J\"");
    }
}
