//! Extraction over a scheduler: many documents at once, from blocking or (feature `tokio`) asynchronous
//! code.
//!
//! ```
//! use constrain::extract::{Extractor, Options};
//! use constrain::model::scripted::{ScriptedModel, vocabulary};
//! use constrain::serve;
//!
//! let extractor = Extractor::new(&vocabulary(), r#"{"enum": ["yes", "no"]}"#, Options::default())?;
//! let (client, scheduler) = serve::channel(serve::Options::default());
//! let thread = std::thread::spawn(move || scheduler.run(&mut ScriptedModel::following("\"no\"")));
//! assert_eq!(client.extract(&extractor, "Is it?")?.value, "no");
//! drop(client);
//! thread.join().expect("the thread")?;
//! # Ok::<(), constrain::Error>(())
//! ```

use crate::decode::Request;
use crate::error::Result;
use crate::extract::{Extraction, Extractor};
use crate::serve::{Client, Ticket};
#[cfg(feature = "tokio")]
use crate::serve::{Event, client::ended};
use serde::de::DeserializeOwned;

impl Client {
    /// Asks for the data of a document, and waits for it.
    ///
    /// # Errors
    /// As [`Extractor::request`], [`Client::submit`], [`Ticket::wait`] and [`Extractor::read`].
    pub fn extract<T: DeserializeOwned + 'static>(
        &self,
        extractor: &Extractor<T>,
        document: &str,
    ) -> Result<Extraction<T>> {
        let (request, ticket) = self.submit_document(extractor, document)?;
        extractor.read(&request, &ticket.wait()?)
    }

    /// Queues the request for a document, and gives it with its ticket. [`Extractor::read`] reads the
    /// outcome.
    ///
    /// # Errors
    /// As [`Extractor::request`] and [`Client::submit`].
    pub fn submit_document<T: DeserializeOwned + 'static>(
        &self,
        extractor: &Extractor<T>,
        document: &str,
    ) -> Result<(Request, Ticket)> {
        let (asks, text) = (extractor.clone(), document.to_owned());
        let request = self.ask(move |model| asks.request(model, &text))??;
        Ok((request.clone(), self.submit(request)?))
    }

    /// As [`Client::extract`], from asynchronous code of any runtime. Where the future is dropped, the request is
    /// cancelled.
    ///
    /// # Errors
    /// As [`Client::extract`].
    #[cfg(feature = "tokio")]
    pub async fn extract_async<T: DeserializeOwned + Send + 'static>(
        &self,
        extractor: &Extractor<T>,
        document: &str,
    ) -> Result<Extraction<T>> {
        let (asks, text) = (extractor.clone(), document.to_owned());
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.tell(move |model| {
            let _ = sender.send(asks.request(model, &text));
        })?;
        let request = receiver.await.map_err(|_| ended())??;
        let (sender, receiver) = tokio::sync::oneshot::channel();
        let mut sender = Some(sender);
        let handle = self.send(request.clone(), move |event| {
            if let Event::End(end) = event
                && let Some(sender) = sender.take()
            {
                let _ = sender.send(*end);
            }
        })?;
        let outcome = receiver.await.map_err(|_| ended())??;
        drop(handle);
        extractor.read(&request, &outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extract::Options;
    use crate::model::scripted::{ScriptedModel, vocabulary};
    use crate::serve;

    const SCHEMA: &str = r#"{"type": "object", "properties": {"a": {"type": "integer"},
        "b": {"enum": ["x", "y"]}}, "required": ["a", "b"], "additionalProperties": false}"#;

    fn extractor() -> Result<Extractor> {
        Extractor::new(&vocabulary(), SCHEMA, Options::default())
    }

    #[test]
    fn many_at_once_give_what_one_decoder_gives() -> Result<()> {
        let extractor = extractor()?;
        let (client, scheduler) = serve::channel(serve::Options::default());
        let thread = std::thread::spawn(move || scheduler.run(&mut ScriptedModel::noise(4)));
        let documents: Vec<String> = (0..12).map(|i| format!("document {i}")).collect();
        let found: Vec<_> = std::thread::scope(|scope| {
            let (client, extractor) = (&client, &extractor);
            let ask = move |document: &String| client.extract(extractor, document);
            let threads: Vec<_> =
                documents.iter().map(|document| scope.spawn(move || ask(document))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
        });
        drop(client);
        thread.join().expect("no panic")?;
        let mut model = ScriptedModel::noise(4);
        let mut decoder = crate::decode::Decoder::new(&mut model);
        for (document, found) in documents.iter().zip(found) {
            let (found, alone) = (found?, extractor.extract(&mut decoder, document)?);
            assert_eq!((found.value, found.fields), (alone.value, alone.fields));
        }
        Ok(())
    }

    #[cfg(feature = "tokio")]
    #[test]
    fn futures_are_served() -> Result<()> {
        let extractor = extractor()?;
        let (client, scheduler) = serve::channel(serve::Options::default());
        let target = r#"{"a": 7, "b": "y"}"#;
        let thread =
            std::thread::spawn(move || scheduler.run(&mut ScriptedModel::following(target)));
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let ask = || {
            let (client, extractor) = (client.clone(), extractor.clone());
            runtime.spawn(async move { client.extract_async(&extractor, "a document").await })
        };
        for task in [ask(), ask()] {
            let found = runtime.block_on(task).expect("no panic")?;
            assert_eq!(
                (found.value["a"].as_i64(), found.value["b"].as_str()),
                (Some(7), Some("y"))
            );
        }
        drop(client);
        thread.join().expect("no panic")?;
        Ok(())
    }
}
