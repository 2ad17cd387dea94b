//! What there is to say about the command line, as messages.

use crate::{
    error::Error,
    model::{Message, MessageKind, Report},
    request::{Remark, Request},
    ui::{Event, Sink},
};

/// The remarks of a request as messages.
fn messages(request: &Request) -> Vec<Message> {
    let message = |remark: &Remark| {
        let (kind, code, text) = match remark {
            Remark::Warning(code, text) => (MessageKind::Warning, code, text),
            Remark::Note(code, text) => (MessageKind::Note, code, text),
        };
        Message { kind, code: (*code).to_owned(), text: text.clone(), hint: None }
    };
    request.remarks.iter().map(message).collect()
}

/// Tells them, before anything else is told.
pub(super) fn tell(request: &Request, sink: &mut dyn Sink) {
    for message in messages(request) {
        sink.event(&Event::Message(&message));
    }
}

/// Puts them at the beginning of the report, and the error at its end: the
/// report holds everything that was said.
pub(super) fn record(report: &mut Report, request: &Request, error: Option<&Error>) {
    let mut all = messages(request);
    all.append(&mut report.messages);
    report.messages = all;
    if let Some(error) = error {
        report.ok = false;
        let code = error.code.row().name;
        let is_there = report.messages.iter().any(|message| message.code == code);
        if !is_there {
            report.messages.push(of_error(error));
        }
    }
}

/// An error as a message.
pub(super) fn of_error(error: &Error) -> Message {
    Message {
        kind: MessageKind::Error,
        code: error.code.row().name.to_owned(),
        text: error.what.clone(),
        hint: error.hints.first().cloned(),
    }
}
