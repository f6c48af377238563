//! Assembler for instructions in the notation of their output, with labels.
//!
//! One instruction a line; `name:` before one is its label for `goto`, `if … goto`, `call` and `r2 = pc name
//! ll` (the address of a function); comments begin with `;`. Helpers may be called by name.

use crate::{
    Arithmetic, Atomic, ByteOrder, Code, CodeError, Condition, Helper, Instruction, Operand, Register, Size,
    Width,
};
use std::collections::HashMap;
use thiserror::Error;

/// An error in the text of a program.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AssemblyError {
    /// A line that can't be parsed.
    #[error("line {line}: {found} can't stand here; {wanted} is wanted")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The text found.
        found: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// A jump to an unknown label, or too far away.
    #[error("line {line}: no line within reach is called {name}")]
    Label {
        /// The line, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// The instructions don't form a program.
    #[error(transparent)]
    Code(#[from] CodeError),
}

/// Assembles a program.
///
/// ```
/// let code = longwire_program::assemble(
///     "     r0 = 1               ; XDP_DROP
///           r2 = *(u32 *)(r1 + 4)
///           r1 = *(u32 *)(r1 + 0)
///           r1 += 14
///           if r1 > r2 goto out
///           r0 = 2               ; XDP_PASS
///      out: exit",
/// );
/// assert_eq!(code.unwrap().instructions()[4].to_string(), "if r1 > r2 goto +1");
/// ```
///
/// # Errors
/// The line and what was expected there.
pub fn assemble(text: &str) -> Result<Code, AssemblyError> {
    let mut labels = HashMap::new();
    let mut read = Vec::new();
    let mut slot = 0;
    for (index, line) in text.lines().enumerate() {
        let mut line = line.split(';').next().unwrap_or("").trim();
        while let Some((label, rest)) = line.split_once(':').filter(|(label, _)| is_name(label.trim())) {
            labels.insert(label.trim(), slot);
            line = rest.trim();
        }
        if line.is_empty() {
            continue;
        }
        let mut cursor = Cursor { tokens: tokens(line), at: 0, line: index + 1, label: None };
        let instruction = cursor.instruction()?;
        cursor.end()?;
        slot += instruction.slots();
        read.push((instruction, cursor.label, index + 1, slot));
    }
    let place = |(instruction, label, line, next): (Instruction, Option<&str>, usize, usize)| match label {
        None => Ok(instruction),
        Some(name) => {
            let offset = labels.get(name).map(|&target| target as i64 - next as i64);
            let placed = offset.and_then(|offset| with_offset(instruction, offset));
            placed.ok_or_else(|| AssemblyError::Label { line, name: name.into() })
        }
    };
    Ok(Code::new(read.into_iter().map(place).collect::<Result<_, _>>()?)?)
}

/// With this offset of its jump; none if it is too far.
fn with_offset(mut instruction: Instruction, to: i64) -> Option<Instruction> {
    match &mut instruction {
        Instruction::Jump { offset } | Instruction::Branch { offset, .. } => *offset = to.try_into().ok()?,
        Instruction::JumpLong { offset }
        | Instruction::CallLocal { offset }
        | Instruction::LoadFunction { offset, .. } => *offset = to.try_into().ok()?,
        _ => {}
    }
    Some(instruction)
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_word)
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Words, runs of operator characters, and single other characters.
fn tokens(line: &str) -> Vec<&str> {
    let operator = |c: char| "=<>!&|^+-*/%".contains(c);
    let (mut tokens, mut rest) = (Vec::new(), line.trim_start());
    while let Some(first) = rest.chars().next() {
        let end = |same: &dyn Fn(char) -> bool| rest.find(|c| !same(c)).unwrap_or(rest.len());
        let length = match first {
            c if is_word(c) => end(&is_word),
            c if operator(c) => end(&operator),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        tokens.push(token);
        rest = after.trim_start();
    }
    tokens
}

/// The tokens of a line, and the read position.
struct Cursor<'t> {
    tokens: Vec<&'t str>,
    at: usize,
    line: usize,
    /// The label to which the instruction jumps.
    label: Option<&'t str>,
}

type Parsed<T> = Result<T, AssemblyError>;

impl<'t> Cursor<'t> {
    fn instruction(&mut self) -> Parsed<Instruction> {
        match self.peek() {
            "exit" => self.next_then(|_| Ok(Instruction::Exit)),
            "goto" => self.next_then(|c| Ok(Instruction::Jump { offset: c.short_target()? })),
            "gotol" => self.next_then(|c| Ok(Instruction::JumpLong { offset: c.target()? })),
            "call" => self.next_then(Self::call),
            "if" => self.next_then(Self::branch),
            "lock" => self.next_then(Self::lock),
            "*" => self.store(),
            _ => self.assignment(),
        }
    }

    fn call(&mut self) -> Parsed<Instruction> {
        let word = self.word("a helper's number or name, or a place")?;
        if let Ok(helper) = word.parse() {
            return Ok(Instruction::Call { helper });
        }
        match word {
            "pc" => Ok(Instruction::CallLocal { offset: self.target()? }),
            "kernel" => Ok(Instruction::CallKernel { id: self.number("a number")? }),
            name => Ok(match Helper::ALL.iter().find(|helper| helper.name() == name) {
                Some(helper) => Instruction::Call { helper: helper.number() },
                None => {
                    self.label = Some(name);
                    Instruction::CallLocal { offset: 0 }
                }
            }),
        }
    }

    fn branch(&mut self) -> Parsed<Instruction> {
        let (width, dst) = self.register()?;
        let condition = self.operator("a comparison", Condition::from_symbol)?;
        let source = self.operand(width)?;
        self.expect("goto")?;
        let offset = self.short_target()?;
        Ok(Instruction::Branch { width, condition, dst, source, offset })
    }

    fn lock(&mut self) -> Parsed<Instruction> {
        let (_, size, base, offset) = self.memory("* (")?;
        let plain = |symbol: &str| Atomic::from_symbol(symbol).filter(|operation| !operation.fetches());
        let operation = self.operator("+=, |=, &= or ^=", plain)?;
        let (_, src) = self.register()?;
        Ok(Instruction::Atomic { width: self.width(size)?, operation, base, offset, src })
    }

    fn store(&mut self) -> Parsed<Instruction> {
        let (_, size, base, offset) = self.memory("* (")?;
        self.expect("=")?;
        let source = self.operand(Width::W64)?;
        Ok(Instruction::Store { size, base, offset, source })
    }

    fn assignment(&mut self) -> Parsed<Instruction> {
        let (width, dst) = self.register()?;
        let operation = self.operator("an assignment", Arithmetic::from_symbol)?;
        if operation == Arithmetic::Mov {
            match self.peek() {
                "*" => return self.load(dst),
                "(" => return self.move_extended(width, dst),
                "map" => return self.next_then(|c| c.map(dst)),
                "pc" => return self.next_then(|c| c.function(dst)),
                word if word.starts_with("atomic_fetch_") => return self.fetch(),
                word if word.starts_with("xchg_") || word.starts_with("cmpxchg_") => return self.exchange(),
                word if swap(word).is_some() => return self.swap(dst),
                "-" if self.is_register(1) => {
                    self.at += 2;
                    return Ok(Instruction::Negate { width, dst });
                }
                _ if self.tokens.last() == Some(&"ll") => {
                    let value = self.wide("a number")?;
                    self.expect("ll")?;
                    return Ok(Instruction::LoadWide { dst, value });
                }
                _ => {}
            }
        }
        let source = self.operand(width)?;
        Ok(Instruction::Arithmetic { width, operation, dst, source })
    }

    fn load(&mut self, dst: Register) -> Parsed<Instruction> {
        let (signed, size, base, offset) = self.memory("* (")?;
        Ok(match signed {
            false => Instruction::Load { size, dst, base, offset },
            true => Instruction::LoadExtended { size, dst, base, offset },
        })
    }

    fn move_extended(&mut self, width: Width, dst: Register) -> Parsed<Instruction> {
        self.expect("(")?;
        let signed = |token: &str| size(token).filter(|&(signed, _)| signed);
        let (_, from) = self.token("s8, s16 or s32", signed)?;
        self.expect(")")?;
        let (_, src) = self.register()?;
        Ok(Instruction::MoveExtended { width, from, dst, src })
    }

    fn swap(&mut self, dst: Register) -> Parsed<Instruction> {
        let (order, size) = self.token("a byte order", swap)?;
        self.register()?;
        Ok(Instruction::Swap { order, size, dst })
    }

    fn map(&mut self, dst: Register) -> Parsed<Instruction> {
        self.expect("[")?;
        let map = self.number("a map's number")?;
        self.expect("]")?;
        let instruction = if self.peek() == "[" {
            self.expect("[ 0 ] +")?;
            Instruction::LoadMapValue { dst, map, offset: self.number("a place in the value")? }
        } else {
            Instruction::LoadMap { dst, map }
        };
        self.expect("ll")?;
        Ok(instruction)
    }

    fn function(&mut self, dst: Register) -> Parsed<Instruction> {
        let offset = self.target()?;
        self.expect("ll")?;
        Ok(Instruction::LoadFunction { dst, offset })
    }

    /// `atomic_fetch_add((u64 *)(r1 + 0), r2)`.
    fn fetch(&mut self) -> Parsed<Instruction> {
        let operation = self.token("atomic_fetch_add, _or, _and or _xor", Atomic::from_symbol)?;
        let (_, size, base, offset) = self.memory("( (")?;
        self.expect(",")?;
        let (_, src) = self.register()?;
        self.expect(")")?;
        Ok(Instruction::Atomic { width: self.width(size)?, operation, base, offset, src })
    }

    /// `xchg_64(r1 + 0, r2)` and `cmpxchg_64(r1 + 0, r0, r2)`.
    fn exchange(&mut self) -> Parsed<Instruction> {
        let read = |token: &str| match token.split_once('_')? {
            (name, "32") => Some((Atomic::from_symbol(name)?, Width::W32)),
            (name, "64") => Some((Atomic::from_symbol(name)?, Width::W64)),
            _ => None,
        };
        let (operation, width) = self.token("xchg_32, xchg_64, cmpxchg_32 or cmpxchg_64", read)?;
        self.expect("(")?;
        let (base, offset) = self.sum()?;
        self.expect(",")?;
        if operation == Atomic::CompareExchange {
            self.expect("r0 ,")?;
        }
        let (_, src) = self.register()?;
        self.expect(")")?;
        Ok(Instruction::Atomic { width, operation, base, offset, src })
    }

    /// `u32 *)(r1 + 4)`, with these tokens before it: whether it is signed, its size, and the place.
    fn memory(&mut self, before: &'static str) -> Parsed<(bool, Size, Register, i16)> {
        self.expect(before)?;
        let (signed, size) = self.token("u8, u16, u32, u64, s8, s16 or s32", size)?;
        self.expect("* ) (")?;
        let (base, offset) = self.sum()?;
        self.expect(")")?;
        Ok((signed, size, base, offset))
    }

    fn sum(&mut self) -> Parsed<(Register, i16)> {
        let (_, base) = self.register()?;
        Ok((base, self.number("an offset, with its sign")?))
    }

    fn width(&self, size: Size) -> Parsed<Width> {
        match size {
            Size::Word => Ok(Width::W32),
            Size::Double => Ok(Width::W64),
            _ => Err(self.wrong_before("u32 or u64")),
        }
    }

    fn register(&mut self) -> Parsed<(Width, Register)> {
        self.token("a register", register)
    }

    fn is_register(&self, ahead: usize) -> bool {
        self.tokens.get(self.at + ahead).is_some_and(|token| register(token).is_some())
    }

    fn operand(&mut self, width: Width) -> Parsed<Operand> {
        if !self.is_register(0) {
            return Ok(Operand::Immediate(self.number("a register or a number")?));
        }
        let (found, register) = self.register()?;
        if found == width {
            Ok(Operand::Register(register))
        } else {
            Err(self.wrong_before("a register as wide"))
        }
    }

    /// A sign, or `s` and an operator, which `read` knows.
    fn operator<T>(&mut self, wanted: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        let symbol = match self.next() {
            "s" => format!("s{}", self.next()),
            other => other.into(),
        };
        read(&symbol).ok_or_else(|| self.wrong_before(wanted))
    }

    /// A token that `read` knows.
    fn token<T>(&mut self, wanted: &'static str, read: impl FnOnce(&str) -> Option<T>) -> Parsed<T> {
        read(self.next()).ok_or_else(|| self.wrong_before(wanted))
    }

    fn short_target(&mut self) -> Parsed<i16> {
        let offset = self.target()?;
        offset.try_into().map_err(|_| self.wrong_before("a nearer place"))
    }

    fn target(&mut self) -> Parsed<i32> {
        if is_name(self.peek()) {
            self.label = Some(self.next());
            return Ok(0);
        }
        self.number("a place's name or distance")
    }

    fn wide(&mut self, wanted: &'static str) -> Parsed<u64> {
        let token = self.next();
        let parsed = match token.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => token.parse(),
        };
        parsed.map_err(|_| self.wrong_before(wanted))
    }

    /// A number of the expected type, with an optional sign.
    fn number<T: TryFrom<i64>>(&mut self, wanted: &'static str) -> Parsed<T> {
        let negative = match self.peek() {
            "-" | "+" => self.next() == "-",
            _ => false,
        };
        let value = i64::try_from(self.wide(wanted)?).map(|value| if negative { -value } else { value });
        value.ok().and_then(|value| value.try_into().ok()).ok_or_else(|| self.wrong_before(wanted))
    }

    fn word(&mut self, wanted: &'static str) -> Parsed<&'t str> {
        let token = self.next();
        if token.starts_with(is_word) { Ok(token) } else { Err(self.wrong_before(wanted)) }
    }

    /// These tokens, with spaces between them here.
    fn expect(&mut self, tokens: &'static str) -> Parsed<()> {
        let one = |token| if self.next() == token { Ok(()) } else { Err(self.wrong_before(token)) };
        tokens.split(' ').try_for_each(one)
    }

    fn end(&mut self) -> Parsed<()> {
        if self.at >= self.tokens.len() {
            return Ok(());
        }
        self.at += 1;
        Err(self.wrong_before("the end of the line"))
    }

    fn peek(&self) -> &'t str {
        self.tokens.get(self.at).copied().unwrap_or("")
    }

    fn next(&mut self) -> &'t str {
        let token = self.peek();
        self.at += 1;
        token
    }

    fn next_then<T>(&mut self, then: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        self.at += 1;
        then(self)
    }

    /// The token just read is not the expected one.
    fn wrong_before(&self, wanted: &'static str) -> AssemblyError {
        let found = match self.tokens.get(self.at.saturating_sub(1)) {
            Some(token) => format!("\"{}\"", token.escape_debug()),
            None => "the end".into(),
        };
        AssemblyError::Syntax { line: self.line, found, wanted }
    }
}

fn register(token: &str) -> Option<(Width, Register)> {
    let (width, number) = match token.split_at_checked(1)? {
        ("r", number) => (Width::W64, number),
        ("w", number) => (Width::W32, number),
        _ => return None,
    };
    Some((width, Register::new(number.parse().ok()?)?))
}

/// `u32` or `s32`: whether it is signed, and its size.
fn size(token: &str) -> Option<(bool, Size)> {
    let (sign, bits) = token.split_at_checked(1)?;
    match (sign, size_of_bits(bits)?) {
        ("u", size) => Some((false, size)),
        ("s", size) if size < Size::Double => Some((true, size)),
        _ => None,
    }
}

fn size_of_bits(bits: &str) -> Option<Size> {
    match bits {
        "8" => Some(Size::Byte),
        "16" => Some(Size::Half),
        "32" => Some(Size::Word),
        "64" => Some(Size::Double),
        _ => None,
    }
}

fn swap(token: &str) -> Option<(ByteOrder, Size)> {
    let (order, bits) = token.split_at(token.find(|c: char| c.is_ascii_digit())?);
    let size = size_of_bits(bits).filter(|&size| size > Size::Byte)?;
    Some((ByteOrder::from_symbol(order)?, size))
}
