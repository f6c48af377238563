//! Invariants for arbitrary bytes as a packet log; also the fuzz target `log`.

use longwire_run::packet_log::printing::LineFormat;
use longwire_run::packet_log::reading::read_input;
use std::path::Path;

/// Reads the bytes as a log in either format. Every entry can be printed in every way: as one line, but for
/// CSV, where a name may contain line breaks between quotes.
pub fn run(bytes: &[u8]) {
    let mut line = String::new();
    let read = read_input(bytes, Path::new("log"), &mut |entry| {
        for format in [LineFormat::Text, LineFormat::Csv, LineFormat::Json] {
            line.clear();
            entry.write(format, &mut line);
            let text = line.strip_suffix('\n').expect("a line ends");
            let is_one = match format {
                LineFormat::Text => !text.contains(char::is_control),
                LineFormat::Csv => true,
                LineFormat::Json => !text.contains('\n'),
            };
            assert!(is_one, "{entry:?}");
        }
        Ok(())
    });
    if let Err(error) = read {
        assert!(!error.to_string().is_empty());
    }
}
