//! Tcl's `expr`, as far as ns scripts need it: integers and decimals, arithmetic, comparisons, logic.

/// Deepest nesting of parentheses.
const DEEPEST: usize = 40;

/// An operand: a number, or a text, which can only be compared.
#[derive(Debug, Clone)]
enum Number {
    Whole(i64),
    Real(f64),
    Text(String),
}

/// Operators by precedence, the weakest first; longer ones before their prefixes.
const RANKS: [&[&str]; 6] =
    [&["||"], &["&&"], &["==", "!=", "eq ", "ne "], &["<=", ">=", "<", ">"], &["+", "-"], &["*", "/", "%"]];

/// The result used for `rand()`: its mean.
const DRAWN: f64 = 0.5;

/// The value of an expression in Tcl's format.
///
/// # Errors
/// Its fault.
pub(super) fn evaluate(text: &str) -> Result<String, String> {
    let mut reader = Reader { rest: text.trim(), depth: 0 };
    let value = reader.rank(0)?;
    if !reader.rest.is_empty() {
        let odd: String = reader.rest.chars().take(20).collect();
        return Err(format!("expr: \"{odd}\" can't be understood"));
    }
    match value {
        Number::Whole(number) => Ok(number.to_string()),
        Number::Real(number) if number.is_finite() && number.abs() < 1e15 => Ok(decimal(number)),
        Number::Real(_) => Err("expr: the number is too large".into()),
        Number::Text(text) => match text.as_str() {
            "true" | "yes" | "on" => Ok("1".into()),
            "false" | "no" | "off" => Ok("0".into()),
            _ => Err(no_number(&text)),
        },
    }
}

/// Whether an expression draws a random number.
pub(super) fn draws(text: &str) -> bool {
    text.contains("rand()")
}

fn no_number(text: &str) -> String {
    format!("expr: \"{}\" is not a number", text.chars().take(20).collect::<String>())
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
            left = apply(operator.trim_end(), left, right)?;
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
                Number::Whole(i64::from(real(self.factor()?)? == 0.0))
            }
            Some('"') => self.quoted('"')?,
            Some('{') => self.quoted('}')?,
            Some(c) if c.is_ascii_digit() || c == '.' => self.number()?,
            Some(_) => self.word()?,
            None => return Err("expr: it ends too early".into()),
        };
        self.depth -= 1;
        Ok(value)
    }

    fn number(&mut self) -> Result<Number, String> {
        let length = number_length(self.rest);
        // A text may begin with a digit: 10Mb.
        if self.rest[length..].starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_') {
            return self.word();
        }
        let (digits, rest) = self.rest.split_at(length);
        self.rest = rest.trim_start();
        match (digits.parse(), digits.parse()) {
            (Ok(number), _) => Ok(Number::Whole(number)),
            (_, Ok(number)) => Ok(Number::Real(number)),
            _ => Err(no_number(&(digits.to_owned() + rest))),
        }
    }

    /// A text up to a terminating character.
    fn quoted(&mut self, end: char) -> Result<Number, String> {
        let (text, rest) = self.rest[1..].split_once(end).ok_or("expr: a quote is not closed")?;
        self.rest = rest.trim_start();
        let whole = text.parse().ok().map(Number::Whole);
        let real = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Number::Real);
        Ok(whole.or_else(real).unwrap_or_else(|| Number::Text(text.into())))
    }

    /// A function, or a text inserted for a variable.
    fn word(&mut self) -> Result<Number, String> {
        let ends = |c: char| c.is_whitespace() || "()=!<>&|+*%\"{}".contains(c);
        let length = self.rest.find(ends).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(length);
        if word.is_empty() {
            return Err(no_number(self.rest));
        }
        self.rest = rest.trim_start();
        if !self.rest.starts_with('(') {
            return Ok(Number::Text(word.into()));
        }
        self.rest = self.rest[1..].trim_start();
        if let ("rand", Some(rest)) = (word, self.rest.strip_prefix(')')) {
            self.rest = rest.trim_start();
            return Ok(Number::Real(DRAWN));
        }
        let argument = self.rank(0)?;
        self.rest = self.rest.strip_prefix(')').ok_or("expr: a ( is not closed")?.trim_start();
        function(word, argument)
    }
}

/// Length of the number at the beginning of a text, with its exponent: `1.5e-3`.
fn number_length(text: &str) -> usize {
    let mantissa = text.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count();
    let Some(exponent) = text[mantissa..].strip_prefix(['e', 'E']) else { return mantissa };
    let exponent = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    match exponent.bytes().take_while(u8::is_ascii_digit).count() {
        0 => mantissa,
        digits => text.len() - exponent.len() + digits,
    }
}

/// Functions of one argument.
fn function(name: &str, argument: Number) -> Result<Number, String> {
    let whole = |value: f64| {
        let fits = value.abs() < 9e18;
        fits.then_some(Number::Whole(value as i64)).ok_or("expr: the number is too large".to_owned())
    };
    let value = real(argument)?;
    match name {
        "int" => whole(value.trunc()),
        "round" => whole(value.round()),
        "double" => Ok(Number::Real(value)),
        "abs" => Ok(Number::Real(value.abs())),
        "ceil" => Ok(Number::Real(value.ceil())),
        "floor" => Ok(Number::Real(value.floor())),
        "sqrt" if value >= 0.0 => Ok(Number::Real(value.sqrt())),
        "srand" => Ok(Number::Real(DRAWN)),
        _ => Err(format!("expr: {name}() is not known")),
    }
}

fn real(number: Number) -> Result<f64, String> {
    match number {
        Number::Whole(number) => Ok(number as f64),
        Number::Real(number) => Ok(number),
        Number::Text(text) => Err(no_number(&text)),
    }
}

/// Compares texts, and anything with `eq` and `ne`.
fn compare_texts(operator: &str, left: &str, right: &str) -> Result<Number, String> {
    let holds = match operator {
        "==" | "eq" => left == right,
        "!=" | "ne" => left != right,
        _ => return Err(no_number(if left.parse::<f64>().is_ok() { right } else { left })),
    };
    Ok(Number::Whole(i64::from(holds)))
}

/// A real number in Tcl's format: a whole one has a decimal, so that it stays real where it is used next.
pub(super) fn decimal(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.1}") } else { number.to_string() }
}

fn written(number: &Number) -> String {
    match number {
        Number::Whole(number) => number.to_string(),
        Number::Real(number) => decimal(*number),
        Number::Text(text) => text.clone(),
    }
}

fn apply(operator: &str, left: Number, right: Number) -> Result<Number, String> {
    let large = || "expr: the number is too large".to_owned();
    let texts = matches!(left, Number::Text(_)) || matches!(right, Number::Text(_));
    if texts || ["eq", "ne"].contains(&operator) {
        return compare_texts(operator, &written(&left), &written(&right));
    }
    if let (&Number::Whole(left), &Number::Whole(right)) = (&left, &right) {
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
    let (left, right) = (real(left)?, real(right)?);
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
            ("0.5 * 4", "2.0"),
            ("1.5 * 2 == 3", "1"),
            ("1.5 * 2 eq 3.0", "1"),
            ("2 * 1e6", "2000000.0"),
            ("1.5e-3 * 2", "0.003"),
            ("25E+1 / 2", "125.0"),
            (" 5 ", "5"),
            ("red == \"red\"", "1"),
            ("\"RED\" != \"DropTail\" && 2 > 1", "1"),
            ("DropTail eq RED", "0"),
            ("{a b} ne {a c}", "1"),
            ("10Mb == 10Mb", "1"),
            ("\"10\" == 10", "1"),
            ("\"10.0\" == 10", "1"),
            ("\"\" == \"\"", "1"),
            ("1 eq 1", "1"),
            ("true", "1"),
            ("rand() * 10", "5.0"),
            ("int(7.9) + round(2.5)", "10"),
            ("int(rand() * 3)", "1"),
        ];
        for (text, value) in table {
            assert_eq!(evaluate(text).as_deref(), Ok(value), "{text}");
        }
        for bad in [
            "",
            "1 +",
            "(1",
            "1 / 0",
            "x",
            "1 2",
            "9223372036854775807 + 1",
            "1.2.3",
            "1e",
            "2 * 1e400",
            "5.5 % 2",
            "red < 2",
            "red + 1",
            "f(2)",
            "sqrt(-1)",
            "\"a",
        ] {
            assert!(evaluate(bad).is_err(), "{bad}");
        }
        assert!(evaluate(&"(".repeat(10_000)).unwrap_err().contains("deeply"));
        assert!(evaluate(&"-".repeat(10_000)).unwrap_err().contains("deeply"));
    }
}
