//! External programs: found in `PATH`, started, ended.

use crate::BenchError;
use std::any::Any;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time for a program to end after its standard input has ended.
const GRACE: Duration = Duration::from_secs(3);

/// Finds a program in `PATH`.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// A program running in its own process group until this is dropped.
pub struct Program {
    child: Child,
    name: String,
    /// Resources that it uses, dropped after it.
    kept: Option<Box<dyn Any + Send>>,
}

impl Program {
    /// Starts it in this thread's namespace. Its standard input stays open until this process ends, however
    /// that happens.
    ///
    /// # Errors
    /// If it is missing.
    pub fn start(mut command: Command) -> Result<Self, BenchError> {
        let name = command.get_program().to_string_lossy().into_owned();
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).process_group(0);
        match command.spawn() {
            Ok(child) => Ok(Self { child, name, kept: None }),
            Err(error) => Err(BenchError::Tool { command: name, reason: error.to_string() }),
        }
    }

    /// Keeps a resource, such as a file, until the program has ended.
    pub fn keeping(self, kept: impl Any + Send) -> Self {
        let mut program = self;
        program.kept = Some(Box::new(kept));
        program
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// If it has ended, with its last output.
    pub fn check(&mut self) -> Result<(), BenchError> {
        let Ok(Some(status)) = self.child.try_wait() else { return Ok(()) };
        let mut said = String::new();
        if let Some(errors) = self.child.stderr.take() {
            // Its output only helps to explain; without it the status must do.
            let _ = errors.take(1 << 16).read_to_string(&mut said);
        }
        let last = said.trim().lines().last().unwrap_or_default();
        Err(BenchError::Tool { command: self.name.clone(), reason: format!("ended with {status}: {last}") })
    }

    fn ended_within(&mut self, time: Duration) -> bool {
        let end = Instant::now() + time;
        loop {
            match self.child.try_wait() {
                Ok(None) if Instant::now() < end => std::thread::sleep(Duration::from_millis(10)),
                Ok(None) => return false,
                _ => return true,
            }
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if !self.ended_within(GRACE) {
            // It may end at this moment; then there is nothing to kill.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_end_with_their_input_and_say_why_they_ended_early() {
        assert!(find("sh").is_some() && find("no-such-program").is_none());
        let mut cat = Program::start(Command::new("cat")).unwrap();
        cat.check().unwrap();
        drop(cat.child.stdin.take());
        assert!(cat.ended_within(GRACE));
        let mut failing = Command::new("sh");
        failing.args(["-c", "echo no interface >&2; exit 3"]);
        let mut failing = Program::start(failing).unwrap();
        assert!(failing.ended_within(GRACE));
        let said = failing.check().unwrap_err().to_string();
        assert!(said.contains("no interface") && said.contains('3'), "{said}");
        assert!(Program::start(Command::new("/no/such/program")).is_err());
    }
}
