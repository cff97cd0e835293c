// app: which page this is.
import {showList} from '/list.js';
import {showRun} from '/run.js';

const pages = {list: showList, run: showRun};
pages[document.body.dataset.page]();
