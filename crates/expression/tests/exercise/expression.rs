//! Invariants for arbitrary bytes as an expression, a zero byte, and a frame; also the fuzz target
//! `expression`.

use longwire_expression::Expression;

/// Parses the expression. Either it is refused, with a column within the text and a fix, or it judges the
/// frame, its negation gives the opposite, and it parses the same when written again.
pub fn run(bytes: &[u8]) {
    let mut parts = bytes.splitn(2, |&byte| byte == 0);
    let text = String::from_utf8_lossy(parts.next().unwrap_or_default());
    let frame = parts.next().unwrap_or_default();
    let expression = match Expression::parse(&text) {
        Ok(expression) => expression,
        Err(error) => {
            assert!(error.column >= 1 && error.column <= text.chars().count() + 1, "{text:?}: {error}");
            assert!(!error.fix.is_empty() && error.to_string().lines().count() == 1, "{text:?}: {error}");
            return;
        }
    };
    let len = frame.len() as u32;
    let verdict = expression.matches(frame, len);
    assert_eq!(Expression::parse(expression.as_str()).as_ref(), Ok(&expression));
    if !expression.as_str().is_empty()
        && let Ok(opposite) = Expression::parse(&format!("not ({expression})"))
    {
        assert_ne!(opposite.matches(frame, len), verdict, "{text:?} on {frame:02x?}");
    }
}
