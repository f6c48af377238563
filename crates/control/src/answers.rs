//! Answers that many clients ask for, made and written once while they stay the same.

use axum::body::Bytes;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Most answers that are kept.
const MOST: usize = 16;
/// The longest answer that is kept, in bytes.
const LONGEST: usize = 256 << 10;

/// What an answer shows: another one if either number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edition {
    /// The number of the counters.
    pub counted: u64,
    /// The number of changes of settings so far.
    pub changed: u64,
}

/// JSON that was written once, for any number of clients.
#[derive(Debug, Clone)]
pub(crate) struct Written(pub(crate) Bytes);

impl Written {
    pub(crate) fn new(answer: &impl serde::Serialize) -> serde_json::Result<Self> {
        serde_json::to_vec(answer).map(|bytes| Self(bytes.into()))
    }
}

impl IntoResponse for Written {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], self.0).into_response()
    }
}

/// One question's last answer. It is locked while the answer is made, so that others wait for it.
type Kept = Arc<Mutex<Option<(Edition, Written)>>>;

/// The last answers of an instance, by question; the one asked last is the last.
#[derive(Debug, Default)]
pub struct Answers(Mutex<Vec<(String, Kept)>>);

impl Answers {
    /// The answer to a question in this edition, which is made only if it is not kept.
    pub(crate) fn once<E>(
        &self,
        question: String,
        edition: Edition,
        make: impl FnOnce() -> Result<Written, E>,
    ) -> Result<Written, E> {
        let kept = self.kept(question);
        let mut kept = lock(&kept);
        if let Some((_, answer)) = kept.as_ref().filter(|(of, _)| *of == edition) {
            return Ok(answer.clone());
        }
        // The memory of the old one is free before the new one is made.
        *kept = None;
        let answer = make()?;
        *kept = (answer.0.len() <= LONGEST).then(|| (edition, answer.clone()));
        Ok(answer)
    }

    fn kept(&self, question: String) -> Kept {
        let mut all = lock(&self.0);
        let known = all.iter().position(|(known, _)| *known == question);
        let entry = match known {
            Some(at) => all.remove(at),
            None => {
                if all.len() == MOST {
                    all.remove(0);
                }
                (question, Kept::default())
            }
        };
        let kept = Arc::clone(&entry.1);
        all.push(entry);
        kept
    }
}

/// The data are consistent even if a holder of the lock panicked.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks, and returns whether the answer was made for that.
    fn is_made(answers: &Answers, question: &str, counted: u64, length: usize) -> bool {
        let mut made = false;
        let make = || {
            made = true;
            Written::new(&"x".repeat(length))
        };
        let edition = Edition { counted, changed: 0 };
        answers.once(question.into(), edition, make).unwrap();
        made
    }

    #[test]
    fn an_answer_is_made_once_in_an_edition() {
        let answers = Answers::default();
        let made = |question, counted| is_made(&answers, question, counted, 10);
        assert!(made("a", 1) && !made("a", 1) && made("b", 1) && !made("a", 1));
        assert!(made("a", 2) && !made("a", 2) && made("b", 2));
    }

    #[test]
    fn few_and_short_answers_are_kept() {
        let answers = Answers::default();
        assert!(is_made(&answers, "long", 1, LONGEST) && is_made(&answers, "long", 1, LONGEST));
        assert!(is_made(&answers, "first", 1, 10));
        for number in 0..3 * MOST {
            assert!(is_made(&answers, &number.to_string(), 1, 10));
        }
        assert_eq!(answers.0.lock().unwrap().len(), MOST);
        assert!(is_made(&answers, "first", 1, 10), "the one asked longest ago goes first");
    }

    #[test]
    fn a_failure_is_not_kept() {
        let answers = Answers::default();
        let edition = Edition { counted: 1, changed: 1 };
        assert!(answers.once("a".into(), edition, || Err(())).is_err());
        assert!(is_made(&answers, "a", 1, 10));
    }
}
