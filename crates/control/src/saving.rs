//! The saving of changes, for which the answers to them wait.

use crate::set_error::SetError;
use std::time::Duration;
use tokio::sync::oneshot;

/// Time limit for saving a change.
const PATIENCE: Duration = Duration::from_secs(5);

/// The outcome of saving a change: the reason if it was not saved.
pub type Saved = Result<(), String>;

/// Receives the outcome of saving a change. Dropped without one, the change was not saved.
#[derive(Debug)]
pub struct Saver(oneshot::Sender<Saved>);

/// The saving of a change, under way. By default, nobody saves it.
#[derive(Debug, Default)]
pub struct Saving(Option<oneshot::Receiver<Saved>>);

/// A change that was made, and the answer to it, which is given when the change has been saved.
#[derive(Debug)]
#[must_use = "the answer has to wait until the change has been saved"]
pub struct Made<T> {
    answer: T,
    saving: Saving,
}

impl Saver {
    /// A saver, and what waits for it.
    pub fn begin() -> (Self, Saving) {
        let (saver, saving) = oneshot::channel();
        (Self(saver), Saving(Some(saving)))
    }

    /// Says how saving ended.
    pub fn end(self, outcome: Saved) {
        // A requester that has left does not want to know.
        let _ = self.0.send(outcome);
    }
}

impl<T> Made<T> {
    /// A change that is being saved, and the answer to it.
    pub const fn new(answer: T, saving: Saving) -> Self {
        Self { answer, saving }
    }

    /// The change with another answer.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn answered<U>(self, answer: impl FnOnce(T) -> Result<U, SetError>) -> Result<Made<U>, SetError> {
        Ok(Made { answer: answer(self.answer)?, saving: self.saving })
    }

    /// The answer, when the change has been saved. Blocks this thread; nothing that the saver needs may be
    /// held meanwhile.
    ///
    /// # Errors
    /// If it was not saved.
    pub fn wait(self) -> Result<T, SetError> {
        let outcome = self.saving.0.map_or(Ok(Ok(())), oneshot::Receiver::blocking_recv);
        outcome_of(outcome).map(|()| self.answer)
    }

    /// The answer, when the change has been saved.
    ///
    /// # Errors
    /// If it was not saved, or not in time.
    pub(crate) async fn saved(self) -> Result<T, SetError> {
        if let Some(saving) = self.saving.0 {
            let late = |_| SetError::NotSaved(format!("that takes more than {} s", PATIENCE.as_secs()));
            outcome_of(tokio::time::timeout(PATIENCE, saving).await.map_err(late)?)?;
        }
        Ok(self.answer)
    }
}

fn outcome_of(outcome: Result<Saved, oneshot::error::RecvError>) -> Result<(), SetError> {
    outcome.unwrap_or_else(|_| Err("the instance is ending".into())).map_err(SetError::NotSaved)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_comes_with_the_outcome() {
        let made = || {
            let (saver, saving) = Saver::begin();
            (saver, Made::new(7, saving))
        };
        let (saver, change) = made();
        saver.end(Ok(()));
        assert_eq!(change.wait(), Ok(7));
        let (saver, change) = made();
        saver.end(Err("no space left".into()));
        let error = change.wait().unwrap_err().to_string();
        assert_eq!(error, "it was changed, but a restart will not restore that: no space left");
        let (saver, change) = made();
        drop(saver);
        assert!(change.wait().unwrap_err().to_string().ends_with(": the instance is ending"));
        assert_eq!(Made::new(7, Saving::default()).wait(), Ok(7), "nobody saves it");
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_does_not_wait_for_ever() {
        let (_saver, saving) = Saver::begin();
        let error = Made::new(7, saving).saved().await.unwrap_err().to_string();
        assert!(error.ends_with("that takes more than 5 s"), "{error}");
    }
}
