//! Settings that are one word out of a few.

/// Makes an enum of words with the text of each.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$word_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[$word_doc])* $variant),+ }

        impl $name {
            /// All of them, in the order of error messages.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Its word in a scenario.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.word())
            }
        }

        impl longwire_settings::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
            const ALL: &'static [Self] = &[$(Self::$variant),+];
        }

        impl longwire_settings::Setting for $name {
            fn of(value: &longwire_settings::Value) -> Option<Self> {
                match *value {
                    longwire_settings::Value::Choice(word) => Self::ALL.get(word).copied(),
                    _ => None,
                }
            }
        }
    };
}

words! {
    /// Division of the work among workers.
    Mapping {
        /// One worker does everything.
        Single = "single",
        /// Ports and links are spread over workers, links near the ports from which packets enter them as far
        /// as the load stays even: one worker handles a packet from start to end where possible.
        Parallel = "parallel",
        /// Some workers have the ports: they receive, classify and transmit. Others have the links and
        /// emulate.
        Pipeline = "pipeline",
    }
}

words! {
    /// Operations allowed by frames.
    NespAllow {
        /// Read settings.
        Get = "get",
        /// Read and change settings.
        Set = "set",
    }
}

words! {
    /// Rings between workers.
    BetweenWorkers {
        /// One per pair of workers and direction.
        Private = "private",
        /// One per receiving worker, with a lock.
        Shared = "shared",
    }
}

words! {
    /// The exclusive senders of a link.
    Only {
        /// Programs of the router where it begins.
        Programs = "programs",
    }
}

words! {
    /// How the slow path's thread waits for packets.
    LevelWait {
        /// Sleeps after a while, until woken.
        Woken = "woken",
        /// Polls: fastest, and takes a core.
        Polling = "polling",
    }
}

words! {
    /// How a worker waits until the next event is due.
    Wait {
        /// Sleeps until shortly before the next deadline, then spins.
        SleepThenSpin = "sleep-then-spin",
        /// Never yields the processor: least lateness.
        Spin = "spin",
        /// Sleeps until the deadline: least processor time, 40–90 µs late.
        Sleep = "sleep",
    }
}

words! {
    /// How paths across bridges are found.
    Routing {
        /// There is a single path: loops of bridges are refused.
        Tree = "tree",
        /// The path with the least delay, then the fewest links, then the first in the file.
        ShortestDelay = "shortest-delay",
    }
}
