//! TLS for the API on TCP: the server's certificate, and the authorities whose clients it lets in.
//!
//! TLS 1.3 only. Sessions are not resumed, so every connection proves anew who its client is.

use crate::certificate::Certificate;
use crate::service::{Accept, AcceptedConnection, Plain};
use std::fs;
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use thiserror::Error;
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use tokio_rustls::rustls::{RootCertStore, ServerConfig, version};
use tokio_rustls::server::TlsStream;

/// The first byte of a connection that begins with a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;
/// The answer to what is probably a request without TLS.
const IS_HTTPS: &str = "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n\
    This port takes HTTPS only: begin the address with https://\n";

/// Bytes that are read and ignored of a connection that is refused.
const MOST_IGNORED: usize = 64 * 1024;

/// The files of a server's TLS, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Its certificate, and those between that and the authority.
    pub certificate: PathBuf,
    /// The key of its certificate.
    pub key: PathBuf,
    /// The authorities that sign certificates of clients. With them, every client needs one.
    pub clients: Option<PathBuf>,
}

/// Why files can't be used for TLS.
#[derive(Debug, Error)]
pub enum TlsError {
    /// One can't be read, or holds something else.
    #[error("can't use {} for TLS: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Others can read the key.
    #[error("others can read or write the key {0} (mode {mode:03o}); run: chmod 600 {0}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
}

/// TLS of a server.
#[derive(Debug)]
pub struct Tls {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// If one can't be read or does not hold what it should, the key is not that of the certificate, or
    /// others can read it.
    pub fn read(files: TlsFiles) -> Result<Self, TlsError> {
        let config = RwLock::new(Arc::new(config(&files)?));
        Ok(Self { files, config })
    }

    /// Reads the files again, for connections from now on.
    ///
    /// # Errors
    /// As [`Tls::read`]; what was read before stays.
    pub fn read_again(&self) -> Result<(), TlsError> {
        let config = Arc::new(config(&self.files)?);
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner)))
    }
}

/// The cryptography of servers and clients.
pub(crate) fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The certificates of a file.
///
/// # Errors
/// If it can't be read, or has none.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let read = CertificateDer::pem_slice_iter(&bytes(path)?).collect::<Result<Vec<_>, _>>();
    let all = read.map_err(|error| refused(path, error))?;
    if all.is_empty() { Err(refused(path, "it has no certificate in PEM")) } else { Ok(all) }
}

/// The key of a file that nobody else may read; a group may.
///
/// # Errors
/// If it can't be read, has no key, or others can read it.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let mode = fs::metadata(path).map_err(|error| refused(path, error))?.mode() & 0o777;
    if mode & 0o027 != 0 {
        return Err(TlsError::Open { path: path.into(), mode });
    }
    let none = |_| refused(path, "it has no key in PEM without a passphrase");
    PrivateKeyDer::from_pem_slice(&bytes(path)?).map_err(none)
}

/// The authorities of a file.
///
/// # Errors
/// If it can't be read, or has none.
pub(crate) fn authorities(path: &Path) -> Result<Arc<RootCertStore>, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        roots.add(certificate).map_err(|error| refused(path, error))?;
    }
    Ok(Arc::new(roots))
}

/// That a file is refused.
pub(crate) fn refused(path: &Path, reason: impl ToString) -> TlsError {
    TlsError::File { path: path.into(), reason: reason.to_string() }
}

fn bytes(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|error| refused(path, error))
}

fn config(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let TlsFiles { certificate, key, clients } = files;
    let builder = ServerConfig::builder_with_provider(provider()).with_protocol_versions(&[&version::TLS13]);
    let builder = builder.map_err(|error| refused(certificate, error))?;
    let builder = match clients {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let verifier =
                WebPkiClientVerifier::builder_with_provider(authorities(path)?, provider()).build();
            builder.with_client_cert_verifier(verifier.map_err(|error| refused(path, error))?)
        }
    };
    let made = builder.with_single_cert(certificates(certificate)?, self::key(key)?);
    let mut config =
        made.map_err(|error| refused(certificate, format!("with {}: {error}", key.display())))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// A listener whose connections begin with a handshake.
pub(crate) struct TlsListener {
    pub(crate) listener: TcpListener,
    pub(crate) tls: Arc<Tls>,
}

impl Accept for TlsListener {
    type Connection = BeforeHandshake;
    const MOST: usize = TcpListener::MOST;

    async fn next(&self) -> io::Result<BeforeHandshake> {
        let Plain(stream) = self.listener.next().await?;
        Ok(BeforeHandshake { stream, acceptor: self.tls.acceptor() })
    }
}

/// A connection before its handshake.
pub(crate) struct BeforeHandshake {
    stream: TcpStream,
    acceptor: TlsAcceptor,
}

impl AcceptedConnection for BeforeHandshake {
    type Stream = TlsStream<TcpStream>;

    async fn open(self) -> io::Result<(Self::Stream, Option<Certificate>)> {
        let mut first = [0];
        if self.stream.peek(&mut first).await? == 1 && first[0] != HANDSHAKE {
            self.stream.writable().await?;
            self.stream.try_write(IS_HTTPS.as_bytes())?;
            end(self.stream).await;
            return Err(io::ErrorKind::InvalidData.into());
        }
        let stream = match self.acceptor.accept(self.stream).into_fallible().await {
            Ok(stream) => stream,
            Err((error, stream)) => {
                end(stream).await;
                return Err(error);
            }
        };
        let certificates = stream.get_ref().1.peer_certificates();
        let certificate = certificates.and_then(<[_]>::first).map(Certificate::of);
        Ok((stream, certificate))
    }
}

/// Ends a connection so that its peer can read what it was sent last, such as an alert: closed with something
/// unread, it would be reset.
async fn end(mut stream: TcpStream) {
    let _ = poll_fn(|context| Pin::new(&mut stream).poll_shutdown(context)).await;
    let mut left = MOST_IGNORED;
    while left > 0 && stream.readable().await.is_ok() {
        match stream.try_read(&mut [0; 4096]) {
            Ok(0) => return,
            Ok(read) => left = left.saturating_sub(read),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => return,
        }
    }
}
