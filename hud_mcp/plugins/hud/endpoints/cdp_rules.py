"""The commands that a client of `cdp/1.3` may send to a session's pages.

This is a list of allowed commands: a new command of a later Chromium is refused until somebody has
thought about it. The list omits commands that reach beyond the session, read files of the machine,
change the task's context (size, colours, language, network), or hold the page up for its graders.

These commands do not decide where a page may go: every request passes the session's proxy.
Addresses are checked here for a clear refusal, and because `file:` and `chrome:` use no proxy.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, cast

from hud_mcp.errors import ActionFailed
from hud_mcp.worlds.browser.slot import SlotOptions

EVENT_DOMAINS = frozenset(
    {
        "Accessibility", "Audits", "CSS", "DOM", "DOMStorage", "Fetch", "IndexedDB", "Input",
        "Inspector", "Log", "Network", "Page", "Performance", "Runtime", "Storage",
    }
)  # fmt: skip
"""Domains whose events are passed on."""


_COMMANDS = {
    "Accessibility": """disable enable getAXNodeAndAncestors getChildAXNodes getFullAXTree
        getPartialAXTree getRootAXNode queryAXTree""",
    "Audits": "disable enable",
    "CSS": """collectClassNames disable enable getBackgroundColors getComputedStyleForNode
        getInlineStylesForNode getMatchedStylesForNode getMediaQueries getPlatformFontsForNode
        getStyleSheetText startRuleUsageTracking stopRuleUsageTracking takeCoverageDelta""",
    "DOM": """collectClassNamesFromSubtree copyTo describeNode disable discardSearchResults enable
        focus getAttributes getBoxModel getContentQuads getDocument getFlattenedDocument
        getFrameOwner getNodeForLocation getNodeStackTraces getNodesForSubtreeByStyle getOuterHTML
        getRelayoutBoundary getSearchResults getTopLayerElements markUndoableState moveTo
        performSearch pushNodeByPathToFrontend pushNodesByBackendIdsToFrontend querySelector
        querySelectorAll redo removeAttribute removeNode requestChildNodes requestNode resolveNode
        scrollIntoViewIfNeeded setAttributeValue setAttributesAsText setNodeName setNodeValue
        setOuterHTML undo""",
    "DOMDebugger": "getEventListeners",
    "DOMSnapshot": "captureSnapshot disable enable",
    "DOMStorage": "clear disable enable getDOMStorageItems removeDOMStorageItem setDOMStorageItem",
    "Emulation": "setDefaultBackgroundColorOverride",
    "Fetch": """continueRequest continueResponse continueWithAuth disable enable failRequest
        fulfillRequest getResponseBody""",
    "HeapProfiler": "collectGarbage",
    "IndexedDB": """clearObjectStore deleteDatabase deleteObjectStoreEntries disable enable
        getMetadata requestData requestDatabase requestDatabaseNames""",
    "Input": """cancelDragging dispatchDragEvent dispatchKeyEvent dispatchMouseEvent
        dispatchTouchEvent imeSetComposition insertText setInterceptDrags synthesizePinchGesture
        synthesizeScrollGesture synthesizeTapGesture""",
    "Inspector": "disable enable",
    "Log": "clear disable enable",
    "Network": """clearBrowserCache clearBrowserCookies deleteCookies disable enable getAllCookies
        getCookies getRequestPostData getResponseBody searchInResponseBody setBlockedURLs
        setBypassServiceWorker setCacheDisabled setCookie setCookies setExtraHTTPHeaders""",
    "Page": """addScriptToEvaluateOnNewDocument bringToFront captureScreenshot captureSnapshot close
        createIsolatedWorld disable enable getFrameTree getLayoutMetrics getNavigationHistory
        getResourceContent getResourceTree handleJavaScriptDialog navigate navigateToHistoryEntry
        printToPDF reload removeScriptToEvaluateOnNewDocument screencastFrameAck searchInResource
        setDocumentContent setInterceptFileChooserDialog setLifecycleEventsEnabled startScreencast
        stopLoading stopScreencast""",
    "Performance": "disable enable getMetrics",
    "Runtime": """addBinding awaitPromise callFunctionOn compileScript disable
        discardConsoleEntries enable evaluate getExceptionDetails getHeapUsage getIsolateId
        getProperties globalLexicalScopeNames queryObjects releaseObject releaseObjectGroup
        removeBinding runScript setAsyncCallStackDepth
        setMaxCallStackSizeToCapture terminateExecution""",
    "Storage": """clearCookies clearDataForOrigin clearDataForStorageKey getCookies getStorageKey
        getStorageKeyForFrame getUsageAndQuota setCookies""",
}

_ALLOWED = frozenset(
    f"{domain}.{command}" for domain, commands in _COMMANDS.items() for command in commands.split()
)

_SO_ALREADY = frozenset(
    {
        # Downloads stay refused. Playwright connects to nothing that objects to being asked.
        "Browser.setDownloadBehavior",
        "Emulation.clearDeviceMetricsOverride",
        "Emulation.setFocusEmulationEnabled",
        "Page.setFontFamilies",
        # The holder of a new page prepares it for the session, and then releases it.
        "Runtime.runIfWaitingForDebugger",
    }
)
"""Commands that are answered and change nothing."""

_REASONS = {
    "Browser.close": "close your connection; the session's browser stays until the task ends",
    "DOM.setFileInputFiles": "it reads files of the browser's machine; make the file in the page, "
    "with `DataTransfer`",
    "Debugger": "it would hold the page up for whoever grades the task",
    "Emulation": "the task's context says how the browser is",
    "IO": "nothing here is handed out as a stream",
}

_WEB = re.compile(r"https?://[^\x00-\x20\\]+", re.IGNORECASE)
"""Addresses that no parser takes for another scheme, because it strips nothing from them."""

_BLANK = frozenset({"", "about:blank"})
_MOST_PIXELS = 64_000_000


class CommandRefused(Exception):
    """A command is not performed; the text names it and says why."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(f"{method} is refused: {reason}.")


class Rules:
    """The rules for one session's pages.

    `address` returns an allowed address, and raises `ActionFailed` for another one.
    """

    def __init__(self, address: Callable[[str], str], options: SlotOptions) -> None:
        self._address = address
        self._options = options

    @property
    def metrics(self) -> dict[str, Any] | None:
        """Return the screen's metrics for each session on a page; None if it knows them by itself.

        Pictures follow the emulation of the session that takes them.
        """
        options = self._options
        if options.scale == 1:
            return None
        size = {"width": options.width, "height": options.height}
        screen = {"screenWidth": options.width, "screenHeight": options.height}
        return {**size, **screen, "deviceScaleFactor": options.scale, "mobile": False}

    def answer(self, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Answer a command without effect, which clients send to every browser; None for others.

        A command that asks for something that is not the case raises CommandRefused.
        """
        match method:
            case "Emulation.setDeviceMetricsOverride":
                self._check_size(method, params)
            case "Emulation.setEmulatedMedia":
                self._check_media(method, params)
            case "Network.emulateNetworkConditions":
                if not _is_plain_network(params):
                    raise CommandRefused(method, "the task's context says how the network is")
            case _ if method not in _SO_ALREADY:
                return None
            case _:
                pass
        return {}

    def check(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameters with which a command is performed, or raise CommandRefused."""
        if method.startswith("Target."):
            raise CommandRefused(method[:100], "it is a command to a browser, and not to a page")
        if method not in _ALLOWED:
            raise self.refusal(method)
        passed = dict(params)
        passed.pop("browserContextId", None)  # a page's own is meant
        match method:
            case "Page.navigate":
                self.check_url(method, params.get("url"))
            case "Fetch.continueRequest" if params.get("url") is not None:
                self.check_url(method, params.get("url"))
            case "Page.printToPDF" if params.get("transferMode") == "ReturnAsStream":
                raise CommandRefused(method, "ask for it with transferMode ReturnAsBase64")
            case "Page.captureScreenshot":
                self._check_clip(method, params.get("clip"))
            case "Input.dispatchDragEvent":
                if _mapping(params.get("data")).get("files"):
                    raise CommandRefused(method, "files of the browser's machine cannot be dragged")
            case _:
                pass
        return passed

    def refusal(self, method: str) -> CommandRefused:
        """Return the error of a command that is on no list."""
        reason = _REASONS.get(method) or _REASONS.get(method.partition(".")[0])
        return CommandRefused(
            method[:100], reason or "only the session's own pages are spoken to here"
        )

    def check_url(self, method: str, url: object) -> None:
        """Raise CommandRefused for an address that is not of http or https, or not allowed."""
        if isinstance(url, str) and url in _BLANK:
            return
        if not isinstance(url, str) or not _WEB.fullmatch(url):
            raise CommandRefused(
                method, f"{str(url)[:200]!r} may not be opened; give a whole http or https URL"
            )
        try:
            self._address(url)
        except ActionFailed as exc:
            raise CommandRefused(method, str(exc).rstrip(".")) from exc

    def _check_size(self, method: str, params: Mapping[str, Any]) -> None:
        mine = self._options.width, self._options.height
        asked = params.get("width"), params.get("height")
        if asked not in (mine, (0, 0)) or params.get("mobile"):
            raise CommandRefused(
                method,
                f"the task's context sets the page to {mine[0]} x {mine[1]} pixels of a desktop",
            )

    def _check_media(self, method: str, params: Mapping[str, Any]) -> None:
        if params.get("media"):
            raise CommandRefused(method, "the page is shown on a screen")
        # The light values are what Playwright asks of every browser that it connects to.
        features = {"prefers-color-scheme": ("light", self._options.color_scheme)}
        features["prefers-reduced-motion"] = ("no-preference", self._options.reduced_motion)
        asked: object = params.get("features")
        for feature in cast("list[object]", asked) if isinstance(asked, list) else []:
            name, value = _mapping(feature).get("name"), _mapping(feature).get("value")
            usual = features.get(str(name), ("none", "no-preference"))
            if value and value not in usual:
                raise CommandRefused(
                    method, f"the task's context sets {name}, and not to {value!r}"
                )

    def _check_clip(self, method: str, clip: object) -> None:
        area = _mapping(clip)
        sides = [area.get(side, 1) for side in ("width", "height", "scale", "scale")]
        pixels = 1.0
        for side in sides:
            pixels *= side if isinstance(side, int | float) else 1.0
        if not pixels <= _MOST_PIXELS:
            raise CommandRefused(
                method, f"the picture would have more than {_MOST_PIXELS:,} pixels"
            )


def _is_plain_network(params: Mapping[str, Any]) -> bool:
    slow = [params.get(name, -1) for name in ("downloadThroughput", "uploadThroughput")]
    usual = all(isinstance(bound, int | float) and bound <= 0 for bound in slow)
    return usual and not params.get("offline") and not params.get("latency")


def _mapping(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
