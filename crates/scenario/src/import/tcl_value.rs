//! Tcl's `expr`, as far as scripts of ns need it: integers and decimals, arithmetic, comparisons, logic.

/// Deepest nesting of parentheses.
const DEEPEST: usize = 40;

/// A number.
#[derive(Debug, Clone, Copy)]
enum Number {
    Whole(i64),
    Real(f64),
}

/// Operators by rank, the weakest first; longer ones before those they begin with.
const RANKS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!="], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// The value of an expression, written as Tcl does.
///
/// # Errors
/// What is wrong with it.
pub(super) fn evaluate(text: &str) -> Result<String, String> {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    let value = reader.rank(0)?;
    if !reader.rest.is_empty() {
        let odd: String = reader.rest.chars().take(20).collect();
        return Err(format!("expr: \"{odd}\" can't be understood"));
    }
    match value {
        Number::Whole(number) => Ok(number.to_string()),
        Number::Real(number) if number.is_finite() && number.abs() < 1e15 => Ok(number.to_string()),
        Number::Real(_) => Err("expr: the number is too large".into()),
    }
}

struct Reader<'t> {
    rest: &'t str,
    depth: usize,
}

impl Reader<'_> {
    fn rank(&mut self, rank: usize) -> Result<Number, String> {
        let Some(operators) = RANKS.get(rank) else { return self.factor() };
        let mut left = self.rank(rank + 1)?;
        while let Some(operator) = operators.iter().find(|operator| self.rest.starts_with(**operator)) {
            self.rest = self.rest[operator.len()..].trim_start();
            let right = self.rank(rank + 1)?;
            left = apply(operator, left, right)?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Number, String> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err("expr: it is nested too deeply".into());
        }
        let value = match self.rest.chars().next() {
            Some('(') => {
                self.rest = self.rest[1..].trim_start();
                let value = self.rank(0)?;
                self.rest = self.rest.strip_prefix(')').ok_or("expr: a ( is not closed")?.trim_start();
                value
            }
            Some('-') => {
                self.rest = self.rest[1..].trim_start();
                apply("-", Number::Whole(0), self.factor()?)?
            }
            Some('!') => {
                self.rest = self.rest[1..].trim_start();
                Number::Whole(i64::from(real(self.factor()?) == 0.0))
            }
            Some(_) => self.number()?,
            None => return Err("expr: it ends too early".into()),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<Number, String> {
        let length = self.rest.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        match (digits.parse(), digits.parse()) {
            (Ok(number), _) => Ok(Number::Whole(number)),
            (_, Ok(number)) => Ok(Number::Real(number)),
            _ => Err(format!(
                "expr: \"{}\" is no number",
                digits.chars().chain(rest.chars()).take(20).collect::<String>()
            )),
        }
    }
}

fn real(number: Number) -> f64 {
    match number {
        Number::Whole(number) => number as f64,
        Number::Real(number) => number,
    }
}

fn apply(operator: &str, left: Number, right: Number) -> Result<Number, String> {
    let large = || "expr: the number is too large".to_owned();
    if let (Number::Whole(left), Number::Whole(right)) = (left, right) {
        // Tcl rounds down, so that the remainder has the divisor's sign.
        let value = match operator {
            "+" => left.checked_add(right).ok_or_else(large)?,
            "-" => left.checked_sub(right).ok_or_else(large)?,
            "*" => left.checked_mul(right).ok_or_else(large)?,
            "/" | "%" if right == 0 => return Err("expr: it divides by zero".into()),
            "/" | "%" => {
                let (quotient, remainder) =
                    (left.checked_div(right).ok_or_else(large)?, left.wrapping_rem(right));
                let under = remainder != 0 && (remainder < 0) != (right < 0);
                if operator == "/" {
                    quotient - i64::from(under)
                } else {
                    remainder + if under { right } else { 0 }
                }
            }
            _ => i64::from(compare(operator, left as f64, right as f64)),
        };
        return Ok(Number::Whole(value));
    }
    let (left, right) = (real(left), real(right));
    Ok(match operator {
        "+" => Number::Real(left + right),
        "-" => Number::Real(left - right),
        "*" => Number::Real(left * right),
        "/" if right != 0.0 => Number::Real(left / right),
        "/" | "%" => return Err("expr: it divides by zero, or takes a remainder of decimals".into()),
        _ => Number::Whole(i64::from(compare(operator, left, right))),
    })
}

fn compare(operator: &str, left: f64, right: f64) -> bool {
    match operator {
        "<" => left < right,
        ">" => left > right,
        "<=" => left <= right,
        ">=" => left >= right,
        "==" => left == right,
        "!=" => left != right,
        "&&" => left != 0.0 && right != 0.0,
        _ => left != 0.0 || right != 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values() {
        let table = [
            ("1 + 2 * 3", "7"),
            ("(1+2)*3", "9"),
            ("7 / 2", "3"),
            ("-7 / 2", "-4"),
            ("-7 % 3", "2"),
            ("7.0 / 2", "3.5"),
            ("1 < 2 && 2 != 3", "1"),
            ("!(1 == 1) || 0", "0"),
            ("10 - 2 - 3", "5"),
            ("0.5 * 4", "2"),
            (" 5 ", "5"),
        ];
        for (text, value) in table {
            assert_eq!(evaluate(text).as_deref(), Ok(value), "{text}");
        }
        for bad in ["", "1 +", "(1", "1 / 0", "x", "1 2", "9223372036854775807 + 1", "1.2.3", "5.5 % 2"] {
            assert!(evaluate(bad).is_err(), "{bad}");
        }
        assert!(evaluate(&"(".repeat(10_000)).unwrap_err().contains("deeply"));
        assert!(evaluate(&"-".repeat(10_000)).unwrap_err().contains("deeply"));
    }
}
