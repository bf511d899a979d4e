// Calls the operations of the server. The token stays in this tab, and is sent as a header only.

const KEY = "meve-token";

export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export function setToken(token) {
  if (token) sessionStorage.setItem(KEY, token);
  else sessionStorage.removeItem(KEY);
}

export function hasToken() {
  return sessionStorage.getItem(KEY) !== null;
}

/** Return the answer of an operation. Throws `Refused`, or AbortError if `signal` gave up. */
export async function ask(operation, body = {}, signal = undefined) {
  const headers = { "Content-Type": "application/json" };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  const request = {
    method: "POST",
    headers,
    body: JSON.stringify(body),
    signal,
    credentials: "omit",
    cache: "no-store",
  };
  let response;
  try {
    response = await fetch(`v1/${operation}`, request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server doesn't answer. Is it still running?");
  }
  const answer = await response.json().catch(() => ({}));
  if (!response.ok)
    throw new Refused(response.status, answer.error?.message ?? `The server answered ${response.status}.`);
  return answer;
}
