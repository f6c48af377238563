//! An instance that serves its API on TCP, as a client finds it: its address, and what each side proves
//! itself by.

use crate::problem::Problem;
use crate::tls::{TlsError, authorities, certificates, key, provider, refused};
use hyper::header::{HeaderValue, InvalidHeaderValue};
use hyper::http::uri::InvalidUri;
use hyper::{StatusCode, Uri};
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, version};

/// Where an instance is served: `https://HOST:PORT`, or `http://` on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrl {
    host: String,
    port: u16,
    is_tls: bool,
}

/// Why an instance on TCP can't be used.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// Not such an address.
    #[error("write https://HOST:PORT: {0}")]
    Malformed(#[from] InvalidUri),
    /// Another kind of address.
    #[error("\"{0}\" is no address of an instance; write https://HOST:PORT")]
    Other(String),
    /// Without TLS, across a network.
    #[error(
        "others could read and change what is sent to {0}: use https, or http only to 127.0.0.1 or localhost"
    )]
    Cleartext(String),
    /// A file is missing on the command line.
    #[error("{0}")]
    Missing(&'static str),
    /// A file can't be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// The token's file can't be read.
    #[error("can't read the token in {}: {source}", path.display())]
    TokenFile {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The token can't be sent.
    #[error("the token in {} can't be sent: {source}", path.display())]
    Token {
        /// Its file.
        path: PathBuf,
        /// Why not.
        source: InvalidHeaderValue,
    },
}

impl FromStr for RemoteUrl {
    type Err = RemoteError;

    fn from_str(text: &str) -> Result<Self, RemoteError> {
        let uri: Uri = text.parse()?;
        let other = || RemoteError::Other(text.into());
        let (is_tls, usual) = match uri.scheme_str() {
            Some("https") => (true, 443),
            Some("http") => (false, 80),
            _ => return Err(other()),
        };
        let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let host = uri.host().filter(|host| !host.is_empty()).map(bare).ok_or_else(other)?;
        let has_user = uri.authority().is_some_and(|authority| authority.as_str().contains('@'));
        if has_user || uri.path() != "/" || uri.query().is_some() {
            return Err(other());
        }
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if !is_tls && !is_here {
            return Err(RemoteError::Cleartext(host));
        }
        Ok(Self { host, port: uri.port_u16().unwrap_or(usual), is_tls })
    }
}

/// The files by which client and server prove who they are.
#[derive(Debug, Clone, Default)]
pub struct RemoteFiles {
    /// The authorities that sign the server's certificate.
    pub ca: Option<PathBuf>,
    /// This client's certificate.
    pub certificate: Option<PathBuf>,
    /// The key of that.
    pub key: Option<PathBuf>,
    /// A token of the instance's.
    pub token: Option<PathBuf>,
}

/// An instance on TCP.
#[derive(Clone)]
pub struct RemoteInstance {
    url: RemoteUrl,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    token: Option<HeaderValue>,
}

impl RemoteInstance {
    /// The one at an address.
    ///
    /// # Errors
    /// If a file is missing, can't be used, or others can read the key.
    pub fn new(url: RemoteUrl, files: &RemoteFiles) -> Result<Self, RemoteError> {
        let tls = if url.is_tls { Some(tls(&url, files)?) } else { None };
        if tls.is_none() && [&files.ca, &files.certificate, &files.key].into_iter().any(Option::is_some) {
            return Err(RemoteError::Missing("certificates are used with https:// only"));
        }
        let token = files.token.as_ref().map(|path| -> Result<_, RemoteError> {
            let unread = |source| RemoteError::TokenFile { path: path.clone(), source };
            let text = fs::read_to_string(path).map_err(unread)?;
            let failed = |source| RemoteError::Token { path: path.clone(), source };
            let mut value = HeaderValue::try_from(format!("Bearer {}", text.trim())).map_err(failed)?;
            value.set_sensitive(true);
            Ok(value)
        });
        Ok(Self { url, tls, token: token.transpose()? })
    }

    /// Its host and port.
    pub(crate) fn authority(&self) -> String {
        let RemoteUrl { host, port, .. } = &self.url;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// What requests to it bear.
    pub(crate) fn token(&self) -> Option<&HeaderValue> {
        self.token.as_ref()
    }

    /// What it sent, if that was this status and no reason.
    pub(crate) fn without_reason(&self, status: StatusCode) -> String {
        let sent = format!("it sent status {status} and no reason");
        // So servers of HTTPS answer a request without TLS.
        if self.tls.is_none() && status == StatusCode::BAD_REQUEST {
            format!("{sent}; it may serve TLS: write https://{}", self.authority())
        } else {
            sent
        }
    }

    /// Its refusal, as users of commands can follow it: their tokens come from files.
    pub(crate) fn explained(&self, mut problem: Problem) -> Problem {
        if problem.status == StatusCode::UNAUTHORIZED.as_u16() {
            let detail = match &self.token {
                None => "this service wants a token: name a file that has one, --token FILE",
                Some(_) => "the token is none of this service's: name a file that has one, --token FILE",
            };
            problem.detail = detail.into();
        }
        problem
    }

    /// A connection to it, on which both sides have proven who they are.
    pub(crate) async fn connect(&self) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect((&*self.url.host, self.url.port)).await?;
        stream.set_nodelay(true)?;
        Ok(match &self.tls {
            None => Box::new(stream),
            Some((connector, name)) => Box::new(connector.connect(name.clone(), stream).await?),
        })
    }
}

impl fmt::Debug for RemoteInstance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Neither key nor token.
        f.debug_struct("RemoteInstance").field("url", &self.url).finish_non_exhaustive()
    }
}

/// A connection of whatever kind.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

fn tls(url: &RemoteUrl, files: &RemoteFiles) -> Result<(TlsConnector, ServerName<'static>), RemoteError> {
    let Some(ca) = &files.ca else {
        let how = "--ca is missing: the authority that signed the server's certificate, or that certificate";
        return Err(RemoteError::Missing(how));
    };
    let failed = |error| RemoteError::Tls(refused(ca, error));
    let builder = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(failed)?.with_root_certificates(authorities(ca)?);
    let mut config = match (&files.certificate, &files.key) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(path)) => builder
            .with_client_auth_cert(certificates(certificate)?, key(path)?)
            .map_err(|error| refused(certificate, format!("with {}: {error}", path.display())))?,
        _ => {
            return Err(RemoteError::Missing(
                "a certificate needs its key: give --cert and --key, or neither",
            ));
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    let name = ServerName::try_from(url.host.clone()).map_err(|_| RemoteError::Other(url.host.clone()))?;
    Ok((TlsConnector::from(Arc::new(config)), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_https_or_of_this_machine() {
        let read = |text: &str| text.parse::<RemoteUrl>();
        let authority = |text: &str| {
            let url = read(text).unwrap();
            RemoteInstance { url, tls: None, token: None }.authority()
        };
        assert_eq!(authority("https://lab.example:8399"), "lab.example:8399");
        assert_eq!(authority("https://[2001:db8::1]:8399/"), "[2001:db8::1]:8399");
        assert_eq!(authority("https://192.0.2.1"), "192.0.2.1:443");
        assert_eq!(authority("http://127.0.0.1:8399"), "127.0.0.1:8399");
        for text in ["http://192.0.2.1:8399", "http://localhost.example:80"] {
            assert!(matches!(read(text), Err(RemoteError::Cleartext(_))), "{text}");
        }
        for text in
            ["", "lab:8399", "ftp://lab", "https://", "https://a@lab:1", "https://lab/v1", "https://lab/?x"]
        {
            assert!(matches!(read(text), Err(RemoteError::Malformed(_) | RemoteError::Other(_))), "{text}");
        }
    }
}
