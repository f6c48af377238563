//! `longwire control echo`: sends UDP packets back.

use crate::RouterArgs;
use longwire_punt::client::{ClientError, Control, Event, Hello};
use longwire_punt::services::reflect;
use longwire_punt::{CutReason, Verdict};
use longwire_report::output;
use std::path::Path;
use std::time::Duration;

/// Longest sleep between checks whether it should end.
const SLEEP: Duration = Duration::from_millis(100);

/// Send UDP packets back to their senders, and pass all others
///
/// Attaches through the router's socket for control processes, under the name NAME.
#[derive(Debug, clap::Args)]
#[command(after_long_help = "\
Examples:
  longwire forwarder install r1 --where control --name echo --packets 1000 --cycles 50000 --destination-port \
  9 --protocol udp
  longwire control echo r1")]
pub struct Args {
    #[command(flatten)]
    target: RouterArgs,

    /// The name of its attachment.
    #[arg(long, default_value = "echo")]
    name: String,
}

impl Args {
    /// Answers packets until it is cut off.
    ///
    /// # Errors
    /// If it is refused.
    pub fn run(self) -> anyhow::Result<()> {
        let socket = self.target.socket()?;
        // The installation sets the guarantee.
        let hello = Hello { name: self.name, packets: 0, cycles: 0, share: 1 };
        let mut control = Control::connect(Path::new(&socket), &hello)?;
        match answer(&mut control) {
            // The router is gone, or its run has ended.
            Err(ended @ ClientError::Ended(None | Some(CutReason::Left | CutReason::Stopped))) => {
                output::note(&ended.to_string());
                Ok(())
            }
            Err(error) => Err(error.into()),
            Ok(never) => match never {},
        }
    }
}

fn answer(control: &mut Control) -> Result<std::convert::Infallible, ClientError> {
    let mut head = Vec::with_capacity(longwire_punt::HEAD);
    loop {
        while let Some(event) = control.next()? {
            let Event::Packet(facts, bytes) = event else { continue };
            head.clear();
            head.extend_from_slice(bytes);
            let (verdict, changed) = match reflect(&mut head) {
                true => (Verdict::Send { port: facts.in_port, band: None }, &head[..]),
                false => (Verdict::Pass, &[][..]),
            };
            while !control.answer(facts.token, verdict, changed)? {
                control.flush();
            }
        }
        control.wait(SLEEP)?;
    }
}
