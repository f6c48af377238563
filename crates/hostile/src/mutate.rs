//! Mutation of a corpus: the same case number and seed give the same bytes.

use longwire_block::Dice;
use std::ops::Range;

/// Longest input in bytes.
const LONGEST: usize = 1 << 16;
/// Limit on the words collected from a corpus.
const MOST_WORDS: usize = 4096;
/// Numbers where something ends.
const EDGES: [u64; 14] =
    [0, 1, 2, 7, 8, 0x7f, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 32, i64::MAX as u64, u64::MAX];

/// The corpus of a target, with the data for its mutation.
pub struct Corpus {
    name: &'static str,
    seed: u64,
    files: Vec<Vec<u8>>,
    /// Words of the text files.
    words: Vec<Vec<u8>>,
}

impl Corpus {
    /// A corpus of these files (at least one) for the target of that name.
    pub fn new(name: &'static str, files: Vec<Vec<u8>>, seed: u64) -> Self {
        let texts = files.iter().filter(|file| is_text(file));
        let mut words: Vec<Vec<u8>> =
            texts.flat_map(|file| pieces(file)).map(<[u8]>::to_vec).filter(|word| word.len() < 64).collect();
        words.sort();
        words.dedup();
        words.truncate(MOST_WORDS);
        Self { name, seed, files, words }
    }

    /// The unmodified files.
    pub fn files(&self) -> &[Vec<u8>] {
        &self.files
    }

    /// The input of the case with this number: a file with one to some of its bytes, words, lines or blocks
    /// changed.
    pub fn input(&self, number: u64) -> Vec<u8> {
        let mut dice = Dice::named(self.seed, &format!("{}/{number}", self.name));
        let mut bytes = self.any_file(&mut dice).to_vec();
        let text = is_text(&bytes) && dice.below(8) > 0;
        // One change half of the time, two a quarter, and so on.
        for _ in 0..=dice.draw().trailing_zeros().min(7) {
            if text {
                self.change_text(&mut bytes, &mut dice);
            } else {
                self.change_bytes(&mut bytes, &mut dice);
            }
        }
        bytes.truncate(LONGEST);
        bytes
    }

    fn any_file(&self, dice: &mut Dice) -> &[u8] {
        &self.files[below(dice, self.files.len())]
    }

    fn change_bytes(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        let len = bytes.len();
        match dice.below(10) {
            _ if len == 0 => bytes.push(dice.draw() as u8),
            0 => bytes[below(dice, len)] ^= 1 << dice.below(8),
            1 => bytes[below(dice, len)] = dice.draw() as u8,
            2 => bytes[below(dice, len)] = EDGES[below(dice, EDGES.len())] as u8,
            3 | 4 => put_number(bytes, dice),
            5 => bytes.truncate(below(dice, len)),
            6 => drop(bytes.drain(stretch(dice, len))),
            7 => {
                let copied = bytes[stretch(dice, len)].to_vec();
                insert(bytes, below(dice, len), &copied);
            }
            8 => {
                let other = self.any_file(dice);
                let taken = &other[stretch(dice, other.len())];
                insert(bytes, below(dice, len), taken);
            }
            _ => self.exchange_slots(bytes, dice),
        }
    }

    /// Replaces eight bytes, the size of an instruction, by eight others, both aligned to eight.
    fn exchange_slots(&self, bytes: &mut [u8], dice: &mut Dice) {
        let other = if dice.below(2) == 0 { self.any_file(dice).to_vec() } else { bytes.to_vec() };
        let (from, to) = (other.as_chunks::<8>().0, bytes.as_chunks_mut::<8>().0);
        if !from.is_empty() && !to.is_empty() {
            to[below(dice, to.len())] = from[below(dice, from.len())];
        }
    }

    fn change_text(&self, bytes: &mut Vec<u8>, dice: &mut Dice) {
        let len = bytes.len();
        match dice.below(8) {
            _ if len == 0 => bytes.extend(self.any_word(dice)),
            0 => bytes[below(dice, len)] = bytes[below(dice, len)],
            1 => bytes[below(dice, len)] = b' ' + dice.below(95) as u8,
            2 => drop(bytes.drain(stretch(dice, len))),
            3 | 4 => {
                let place = some_piece(bytes, dice);
                let word = self.any_word(dice).to_vec();
                bytes.splice(place, word);
            }
            5 => {
                let place = some_piece(bytes, dice);
                let number = EDGES[below(dice, EDGES.len())].wrapping_add(dice.below(3)).wrapping_sub(1);
                bytes.splice(place, number.to_string().into_bytes());
            }
            6 => {
                let at = some_line(bytes, dice).start;
                let other = self.any_file(dice);
                let line = other[some_line(other, dice)].to_vec();
                insert(bytes, at, &line);
            }
            _ => {
                let line = bytes.drain(some_line(bytes, dice)).collect::<Vec<_>>();
                if dice.below(2) == 0 {
                    let at = some_line(bytes, dice).start;
                    insert(bytes, at, &line);
                }
            }
        }
    }

    fn any_word(&self, dice: &mut Dice) -> &[u8] {
        self.words.get(below(dice, self.words.len().max(1))).map_or(b"0", Vec::as_slice)
    }
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'))
}

/// A random index below `bound`, which is at least 1.
fn below(dice: &mut Dice, bound: usize) -> usize {
    dice.below(bound.max(1) as u64) as usize
}

/// A random range of up to 64 out of `len` elements.
fn stretch(dice: &mut Dice, len: usize) -> Range<usize> {
    let from = below(dice, len);
    from..(from + 1 + below(dice, 64)).min(len)
}

fn insert(bytes: &mut Vec<u8>, at: usize, what: &[u8]) {
    bytes.splice(at..at, what.iter().copied());
}

/// Writes a random number of one, two, four or eight bytes, in either byte order.
fn put_number(bytes: &mut [u8], dice: &mut Dice) {
    let size = (1 << dice.below(4)).min(bytes.len());
    let at = below(dice, bytes.len() - size + 1);
    let number = EDGES[below(dice, EDGES.len())].wrapping_add(dice.below(3)).wrapping_sub(1);
    if dice.below(2) == 0 {
        bytes[at..at + size].copy_from_slice(&number.to_le_bytes()[..size]);
    } else {
        bytes[at..at + size].copy_from_slice(&number.to_be_bytes()[8 - size..]);
    }
}

/// Words and separators.
fn pieces(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.chunk_by(|a, b| a.is_ascii_alphanumeric() == b.is_ascii_alphanumeric())
}

/// The range of one of them, near a random position.
fn some_piece(text: &[u8], dice: &mut Dice) -> Range<usize> {
    let at = below(dice, text.len());
    let Some(kind) = text.get(at).map(u8::is_ascii_alphanumeric) else { return 0..0 };
    let other = |byte: &u8| byte.is_ascii_alphanumeric() != kind;
    let from = text[..at].iter().rposition(other).map_or(0, |place| place + 1);
    let to = text[at..].iter().position(other).map_or(text.len(), |place| at + place);
    from..to
}

/// The range of a line with its newline.
fn some_line(text: &[u8], dice: &mut Dice) -> Range<usize> {
    let at = below(dice, text.len());
    let from = text[..at].iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    let to = text[at..].iter().position(|&byte| byte == b'\n').map_or(text.len(), |place| at + place + 1);
    from..to
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corpus(seed: u64) -> Corpus {
        Corpus::new(
            "test",
            vec![b"drop if tcp\npass if udp\n".to_vec(), vec![0, 255, 7, 0, 9, 1, 1, 1, 1, 1]],
            seed,
        )
    }

    #[test]
    fn the_same_number_gives_the_same_bytes() {
        let inputs = |seed| (0..500).map(|number| corpus(seed).input(number)).collect::<Vec<_>>();
        let first = inputs(1);
        assert_eq!(first, inputs(1));
        assert_ne!(first, inputs(2));
        let mut different = first.clone();
        different.sort();
        different.dedup();
        assert!(different.len() > 400, "{}", different.len());
    }

    #[test]
    fn words_are_exchanged_whole() {
        let texts: Vec<_> = (0..4000).map(|number| corpus(3).input(number)).collect();
        assert!(texts.contains(&b"drop if udp\npass if udp\n".to_vec()));
        assert!(texts.contains(&b"pass if udp\n".to_vec()), "a line is taken away");
    }

    #[test]
    fn pieces_and_lines_are_found() {
        let mut dice = Dice::seeded(1);
        for _ in 0..100 {
            let piece = some_piece(b"drop if", &mut dice);
            assert!([0..4, 4..5, 5..7].contains(&piece), "{piece:?}");
            let line = some_line(b"one\ntwo", &mut dice);
            assert!([0..4, 4..7].contains(&line), "{line:?}");
        }
        assert_eq!((some_piece(b"", &mut dice), some_line(b"", &mut dice)), (0..0, 0..0));
    }
}
