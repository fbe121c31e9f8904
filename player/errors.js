// Error texts for viewers: what happened, and the remedy. Technical details go to the log.

/** Statuses for which another attempt cannot help, except where a later attempt is invited. */
const isPermanentStatus = (status) => status >= 400 && status < 500 && ![408, 425, 429].includes(status);

const CAUSES = {
  400: ['The server did not understand the request.', 'Reload this page.'],
  401: ['The server demands a login for this film.', 'Log in, then reload this page.'],
  403: ['The server does not allow this film to be played.', 'Ask the operator of the server for access.'],
  404: ['The server does not have this film, or a part of it is missing.', 'Check the address, or choose another film in the library.'],
  410: ['The film was replaced while you watched it.', 'Reload this page to watch the new version.'],
  429: ['The server received too many requests from you.', 'Wait a moment, then try again.'],
  502: ['The server cannot read the film from its source.', 'Try again later.'],
  503: ['The server is too busy to send the film.', 'Wait a moment, then try again.'],
  504: ['The source of the film does not respond in time.', 'Try again later.'],
};
const UNREACHABLE = ['The server cannot be reached.', 'Check your connection and that the server runs, then try again.'];
const REJECTED = ['The server refused the request.', 'Choose another film in the library.'];
const FAILED = ['The server failed to send the film.', 'Try again later.'];

/** Describes the status of a failed request as [what, advice]; 0 means that no response arrived. */
export function describeStatus(status) {
  if (!status) return UNREACHABLE;
  return CAUSES[status] ?? (isPermanentStatus(status) ? REJECTED : FAILED);
}

/** A request that failed: `message` and `advice` are for viewers, `detail` is for the log. */
export class RequestError extends Error {
  constructor(status, { path = '', reason = '' } = {}) {
    const [what, advice] = describeStatus(status);
    super(reason ? `${what} ${capitalize(reason)}.` : what);
    Object.assign(this, { status, advice, reason, detail: `${status || 'no response'} for ${path}` });
  }

  /** Returns whether another attempt can succeed. */
  get isTransient() {
    return !isPermanentStatus(this.status);
  }
}

/** Returns the reason in a `Headwater-Error` header without the side at fault, a term of operators. */
export const reasonOf = (header) => (header ?? '').replace(/^(client|upstream|internal)(; |$)/, '').replace(/\.$/, '');

export const capitalize = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/** Describes a MediaError as [what, advice]. After the start, a format error is a missing segment. */
export function describeMediaError(error, hasStarted) {
  switch (error?.code) {
    case MediaError.MEDIA_ERR_NETWORK:
      return ['The film stopped arriving.', 'Check your connection and that the server runs, then try again.'];
    case MediaError.MEDIA_ERR_DECODE:
      return ['The browser could not decode the film.', 'Run headwater check on the file, or try another quality.'];
    case MediaError.MEDIA_ERR_SRC_NOT_SUPPORTED:
      return hasStarted ? ['The film stopped arriving.', 'Try again, or choose another player.']
        : ['This browser cannot play this format.', 'Choose another player, or a browser that has the codec.'];
    default:
      return ['Playback was interrupted.', 'Try again.'];
  }
}
