//! Times of a shell's `sleep`s.

use super::Notes;
use super::lines::Line;
use super::quantity::time;
use longwire_units::Nanos;

/// Total time of a script's `sleep`s so far.
#[derive(Default)]
pub(super) struct Clock(Nanos);

impl Clock {
    /// Handles a `sleep` command; returns whether it is one.
    pub(super) fn passes(&mut self, line: &Line, notes: &mut Notes) -> bool {
        let mut words = line.words.iter().skip_while(|word| *word == "sudo");
        if words.next().is_none_or(|word| word.rsplit('/').next() != Some("sleep")) {
            return false;
        }
        let (number, unit) =
            words.next().map_or(("", ""), |word| match word.strip_suffix(['s', 'm', 'h', 'd']) {
                Some(number) => (number, &word[number.len()..]),
                None => (&**word, ""),
            });
        let each = match unit {
            "m" => 60,
            "h" => 3600,
            "d" => 86_400,
            _ => 1,
        };
        let when = match time(number, each * 1_000_000_000) {
            Some(slept) if self.0 < Nanos::NEVER => {
                self.0 += slept;
                format!("{} after the beginning", self.0)
            }
            // After an unknown time all times are unknown.
            _ => {
                self.0 = Nanos::NEVER;
                "later".into()
            }
        };
        let why = format!(
            "what follows it comes {when} there; here no time passes between commands, and of those for one \
             link the last counts: write a change at a time as an [[at]] event"
        );
        notes.add(line.number, &line.text(), why);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::run;

    #[test]
    fn sleeps_add_up() {
        let mut notes = Notes::default();
        let lines = run("sleep 1.5; tc a; sudo /bin/sleep 2m; tc b; sleep $X; sleep 1", |_| true, &mut notes)
            .unwrap();
        let mut clock = Clock::default();
        let sleeps: Vec<_> = lines.iter().map(|line| clock.passes(line, &mut notes)).collect();
        assert_eq!(sleeps, [true, false, true, false, true, true]);
        let told: Vec<_> = notes.list.iter().map(|note| note.why.split(" there;").next().unwrap()).collect();
        let after = |time: &str| format!("what follows it comes {time} after the beginning");
        assert_eq!(
            told,
            [
                &*after("1.5 s"),
                &after("121.5 s"),
                "what follows it comes later",
                "what follows it comes later"
            ]
        );
    }
}
